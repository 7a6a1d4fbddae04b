// The report's one script: a button beside each block of text that copies it. Without it a click still selects the block.
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
