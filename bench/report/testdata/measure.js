// Measures the page it runs in; see browser_root_test.go.
(() => {
  const found = { wide: [], faint: [], small: [], texts: 0, drawings: 0, empty: 0, cells: 0, paper: "" };
  const name = (e) => `${e.tagName.toLowerCase()}.${e.className.baseVal ?? e.className}: ${e.textContent.trim().slice(0, 40)}`;
  for (const d of document.querySelectorAll("details")) d.open = true;

  // A colour in any notation, as the pixel that it paints.
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (text) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = text;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    const below = e.parentElement ? ground(e.parentElement) : [255, 255, 255, 1];
    return over(rgba(getComputedStyle(e).backgroundColor), below);
  };
  // WCAG 2.2: relative luminance and contrast ratio.
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || e.closest("script")) continue;
    found.texts++;
    const style = getComputedStyle(e), paper = ground(e), ratio = contrast(over(rgba(style.color), paper), paper);
    if (ratio < 4.5) found.faint.push(`${ratio.toFixed(2)} ${name(e)}`);
    if (parseFloat(style.fontSize) < 12) found.small.push(name(e));
  }

  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.wide.push(`the page: ${document.documentElement.scrollWidth}`);
  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (!e.closest(".scroll > *, svg *") && (box.right > width + 1 || box.left < -1)) found.wide.push(name(e));
  }

  for (const drawing of document.querySelectorAll("svg")) {
    const marks = [...drawing.querySelectorAll("rect")].map((r) => r.getBoundingClientRect());
    if (marks.some((m) => m.width > 0 && m.height > 0)) found.drawings++;
    else found.empty++;
  }
  for (const cell of document.querySelectorAll(".heat td.cell")) {
    if (cell.getBoundingClientRect().width > 0) found.cells++;
  }
  found.paper = getComputedStyle(document.body).backgroundColor;
  return JSON.stringify(found);
})()
