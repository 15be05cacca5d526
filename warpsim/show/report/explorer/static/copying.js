// Copying and saving: to the clipboard where the page may, and as files.

import { byId, make } from "./elements.js";

// Without leave for the clipboard, as in a file opened from disk, a selected text area does it.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const place = make("textarea", { class: "spoken", "aria-hidden": "true" });
    place.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(place);
    place.select();
    const done = document.execCommand("copy");
    place.remove();
    return done;
  }
}

export function saveText(name, text) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "text/plain" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

let fading = 0;

export function notice(text) {
  const place = byId("notice");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { place.hidden = true; }, 1800);
}
