/*
 * Keeps pages up to date. Asks the page's own address for what is marked with
 * data-rqueue-live, and puts each part in the place of the one with the same id.
 *
 * Rests while nobody can see the page, while somebody is busy within a part, and ever
 * longer while the server does not answer. The checkbox it adds turns it off.
 */
"use strict";

{
  const MARK = "data-rqueue-live";
  const PAUSE = 5000;
  const LONGEST_PAUSE = 60000;
  const OFF = "robust_queue.live";

  let pause = PAUSE;
  let timer = null;
  let isUnderWay = false;

  const parts = () => [...document.querySelectorAll(`[${MARK}][id]`)];

  const remembered = () => {
    try {
      return localStorage.getItem(OFF) !== "off";
    } catch {
      return true; // no storage: as lively as can be
    }
  };

  const remember = (isOn) => {
    try {
      localStorage.setItem(OFF, isOn ? "on" : "off");
    } catch {
      // It holds for this page, then.
    }
  };

  let isOn = remembered();

  // What somebody types, chooses or reads there must not be taken away from them.
  const isInUse = (part) => {
    const active = document.activeElement;
    const isFocused = part !== active && part.contains(active);
    const isTicked = part.querySelector("input[type=checkbox]:checked");
    const selection = document.getSelection();
    const isSelected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
    return isFocused || isTicked || isSelected;
  };

  // Details that were opened stay open.
  const keepOpen = (old, fresh) => {
    const before = [...old.querySelectorAll("details")];
    [...fresh.querySelectorAll("details")].forEach((each, at) => {
      if (before[at]) {
        each.open = before[at].open;
      }
    });
  };

  const put = (page) => {
    for (const old of parts()) {
      const fresh = page.getElementById(old.id);
      if (fresh && !isInUse(old) && fresh.innerHTML !== old.innerHTML) {
        keepOpen(old, fresh);
        old.replaceWith(document.adoptNode(fresh));
      }
    }
  };

  const ask = async () => {
    const answer = await fetch(location.href, {
      headers: { "X-Robust-Queue-Live": "1" },
      credentials: "same-origin",
      redirect: "error", // to the form for logging in, most likely
    });
    if (!answer.ok) {
      throw new Error(answer.statusText);
    }
    put(new DOMParser().parseFromString(await answer.text(), "text/html"));
  };

  const turn = async () => {
    if (isUnderWay || !isOn || document.hidden) {
      return;
    }
    isUnderWay = true;
    try {
      await ask();
      pause = PAUSE;
      document.body.classList.remove("rqueue-stale");
    } catch {
      pause = Math.min(2 * pause, LONGEST_PAUSE);
      document.body.classList.add("rqueue-stale");
    }
    isUnderWay = false;
    plan();
  };

  const plan = () => {
    clearTimeout(timer);
    if (isOn && !document.hidden) {
      timer = setTimeout(turn, pause);
    }
  };

  const addSwitch = () => {
    const bar = document.querySelector(".rqueue-nav");
    const label = bar?.dataset.live;
    if (!label) {
      return;
    }
    const box = document.createElement("input");
    box.type = "checkbox";
    box.id = "rqueue-live";
    box.checked = isOn;
    box.addEventListener("change", () => {
      isOn = box.checked;
      remember(isOn);
      pause = PAUSE;
      turn();
    });
    const words = document.createElement("label");
    words.htmlFor = box.id;
    words.append(label);
    const place = document.createElement("p");
    place.className = "rqueue-live";
    place.append(box, words);
    bar.append(place);
  };

  document.addEventListener("DOMContentLoaded", () => {
    if (!parts().length) {
      return;
    }
    addSwitch();
    // Whoever comes back to the page sees at once what has happened meanwhile.
    document.addEventListener("visibilitychange", turn);
    plan();
  });
}
