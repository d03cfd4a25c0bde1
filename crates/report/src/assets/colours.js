// Colours of names.

// A steady colour for a name; light enough that black text reads on it in both themes. Kept as #rrggbb, which the
// canvas reads several times faster than hsl(): a frame sets thousands.
const hues = new Map();
export function hue(id, dark, merged = false) {
  const key = id * 4 + (dark ? 2 : 0) + (merged ? 1 : 0);
  let colour = hues.get(key);
  if (!colour) {
    const [angle, light] = [(id * 137.508 + 205) % 360, dark ? 0.62 : 0.74];
    const strength = (merged ? 0.18 : 0.52) * Math.min(light, 1 - light);
    const channel = (n) => {
      const k = (n + angle / 30) % 12;
      return Math.round(255 * (light - strength * Math.max(-1, Math.min(k - 3, 9 - k, 1)))).toString(16).padStart(2, "0");
    };
    hues.set(key, (colour = `#${channel(0)}${channel(8)}${channel(4)}`));
  }
  return colour;
}
