// The report's one script. What goes on beyond the right edge of its box fades there.
const fade = (box) => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => fade(target)));
for (const box of document.querySelectorAll(".wide, .chart")) {
  box.addEventListener("scroll", () => fade(box), { passive: true });
  sizes.observe(box);
}
// A button beside each block of text copies it. Without it a click still selects the block.
for (const block of document.querySelectorAll("pre")) {
  const press = document.createElement("button");
  press.type = "button";
  press.className = "copy";
  press.textContent = "Copy";
  press.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      press.textContent = "Copied";
    } catch (e) {
      getSelection().selectAllChildren(block);
      press.textContent = "Selected";
    }
    setTimeout(() => { press.textContent = "Copy"; }, 1500);
  });
  block.before(press);
}
