// Colours of boxes as #rrggbb, for black text and, in the dark, for white: a hue for each group of four lanes and
// a shade for each lane in it, as ``warpsim layout`` has them; a hue for each register.

function channel(hue, lightness, saturation, offset) {
  const at = (offset + hue * 12) % 12;
  const chroma = saturation * Math.min(lightness, 1 - lightness);
  return lightness - chroma * Math.max(-1, Math.min(at - 3, 9 - at, 1));
}

function colour(hue, lightness, saturation) {
  const digits = [0, 8, 4].map((offset) =>
    Math.round(255 * channel(hue, lightness, saturation, offset)).toString(16).padStart(2, "0"));
  return `#${digits.join("")}`;
}

export function laneColour(lane, dark = false) {
  const [group, thread] = [(Math.floor(lane / 4) % 8) / 8, lane % 4];
  return dark ? colour(group, 0.18 + 0.035 * thread, 0.42) : colour(group, 0.91 - 0.06 * thread, 0.72);
}

const TURN = 0.618034; // of the circle: neighbours differ, however many there are

export function registerColour(register, dark = false) {
  const hue = (0.58 + TURN * register) % 1;
  const shade = register % 3;
  return dark ? colour(hue, 0.2 + 0.035 * shade, 0.42) : colour(hue, 0.88 - 0.05 * shade, 0.7);
}
