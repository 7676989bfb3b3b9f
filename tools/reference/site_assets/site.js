// Buttons that copy a block of code, without the prompts and the output of a console.
document.querySelectorAll("div.highlight").forEach((block) => {
  const code = block.querySelector("code");
  if (!code || !navigator.clipboard) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const lines = code.textContent.replace(/\n$/, "").split("\n");
    const typed = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    await navigator.clipboard.writeText((typed.length ? typed : lines).join("\n") + "\n");
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
});
// Wide tables scroll by themselves, and not the whole page.
document.querySelectorAll("div[role=main] table").forEach((table) => {
  const frame = document.createElement("div");
  frame.className = "table-scrolls";
  table.replaceWith(frame);
  frame.append(table);
});
