// Light and dark: as the system has it until someone chooses.

import { byId } from "./elements.js";

const NAMES = ["auto", "light", "dark"];
const KEY = "warpsim-theme";

// Storage is refused to pages in a notebook's frame.
function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function store(name) {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // then the choice lasts as long as the page
  }
}

function apply(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = `Theme: ${name}`;
}

export function nextTheme() {
  const now = document.documentElement.dataset.theme;
  const name = NAMES[(NAMES.indexOf(now) + 1) % NAMES.length];
  apply(name);
  store(name);
}

export function startTheme() {
  const name = stored();
  apply(NAMES.includes(name) ? name : "auto");
  byId("theme").addEventListener("click", nextTheme);
}
