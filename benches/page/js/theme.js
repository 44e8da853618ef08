/**
 * Light, dark, or as the system has it: a button that takes turns. It is kept for the
 * visit only, because a file opened from disk has no storage of its own.
 *
 * @module theme
 */
function startTheme(changed) {
  const themes = ["system", "light", "dark"];
  const button = byId("theme");
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % themes.length;
    document.documentElement.dataset.theme = themes[at];
    button.textContent = `Theme: ${themes[at]}`;
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
