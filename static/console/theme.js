// Before anything is painted: the device's colours, for who has not chosen. Without scripts, "auto" is light.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = () => { if (root.dataset.theme === "auto") root.dataset.bsTheme = dark.matches ? "dark" : "light"; };
  set();
  dark.addEventListener("change", set);
})();
