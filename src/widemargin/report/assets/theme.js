// Colours: as the system has them, light or dark.
"use strict";

(() => {
  const buttons = document.querySelectorAll("[data-theme-choice]");

  function choose(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    buttons.forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
    });
  }

  buttons.forEach((button) => {
    button.addEventListener("click", () => choose(button.dataset.themeChoice));
  });
})();
