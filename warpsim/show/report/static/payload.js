// The data in the page: a document of JSON, and one block of bytes, compressed and in base64.

import { byId } from "./elements.js";

async function unpacked(text) {
  const compressed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

export async function readPayload() {
  const document = JSON.parse(byId("document").textContent);
  return { document, buffer: await unpacked(byId("arrays").textContent.trim()) };
}
