// Runs before the first paint, so that a chosen appearance does not flash the other one.
try {
  const chosen = localStorage.getItem('navi.theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is forbidden: the system's appearance serves.
}
