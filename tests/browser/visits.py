"""What a browser tells of a page: whether it is well, and what is wrong with it."""

from importlib import resources

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
GRAVE = ("serious", "critical")
# The label of Django's search is a picture, whose text this rule does not count.
LEFT_OUT = ["label-title-only"]
# In the dark, nothing but the colours is different.
SCHEMES = {"light": None, "dark": ["color-contrast"]}
# Colours change slowly; what is judged is where they come to rest.
AUDIT = """async ([rules, left_out]) => {
  document.getAnimations().forEach(each => each.finish());
  const options = {resultTypes: ["violations"]};
  if (rules) options.runOnly = rules;
  else options.rules = Object.fromEntries(left_out.map(r => [r, {enabled: false}]));
  const found = await axe.run(document, options);
  return found.violations.map(each => ({
    rule: each.id,
    impact: each.impact,
    places: each.nodes.slice(0, 3).map(node => node.target.join(" ") + ": " +
      (node.any[0] || node.all[0] || node.none[0] || {message: ""}).message),
  }));
}"""
OVERFLOW = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return "";
  const wide = [...document.querySelectorAll("body *")].filter(
    each => each.scrollWidth > page.clientWidth ||
      each.getBoundingClientRect().right > page.clientWidth + 1);
  const names = wide.slice(0, 3).map(each => each.tagName + "." + each.className);
  return `${page.scrollWidth} > ${page.clientWidth}: ${names.join(", ")}`;
}"""


class Visitor:
    """A browser window that notes down everything that goes wrong in it."""

    def __init__(self, page, base):
        self.page, self.base = page, base
        self.troubles = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self._note(f"script: {error}"))
        page.on("dialog", self._dismiss)
        page.on("response", self._look_at)

    def open(self, address):
        """Load a page of the site; return its status."""
        self.troubles.clear()
        return self.page.goto(self.base + address, wait_until="load").status

    def press(self, name):
        """Press the button of that name, and wait for the page that follows."""
        button = self.page.get_by_role("button", name=name, exact=True)
        with self.page.expect_navigation():
            button.click()

    def text(self):
        """All that is to be read on the page."""
        return self.page.inner_text("body")

    def is_too_wide(self):
        """Tell what sticks out at the side, if anything does."""
        return self.page.evaluate(OVERFLOW)

    def is_taken_over(self):
        """Tell whether a name has become code."""
        return bool(self.page.evaluate("window.__pwned"))

    def barriers(self, scheme):
        """What keeps people from using the page, in the light or in the dark."""
        self.page.emulate_media(color_scheme=scheme)
        self.page.evaluate(AXE)
        found = self.page.evaluate(AUDIT, [SCHEMES[scheme], LEFT_OUT])
        return [each for each in found if each["impact"] in GRAVE]

    def _hear(self, message):
        # The first window asks for a picture that the site does not have.
        is_icon = message.location["url"].endswith("/favicon.ico")
        if message.type in ("error", "warning") and not is_icon:
            self._note(f"console: {message.text}")

    def _dismiss(self, dialog):
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _look_at(self, response):
        is_page = response.request.is_navigation_request()
        if response.status >= 400 and not is_page:
            self._note(f"{response.status}: {response.url}")

    def _note(self, trouble):
        self.troubles.append(trouble)
