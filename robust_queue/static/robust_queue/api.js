// The pages of the HTTP API. A file of its own, so that a strict policy lets it run.
"use strict";

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  deepLinking: true,
  validatorUrl: null,
  // Whoever comes with a session shows this as well, when anything is changed.
  requestInterceptor: (request) => {
    const { csrfHeader, csrfToken } = document.body.dataset;
    request.headers[csrfHeader] = csrfToken;
    return request;
  },
});
