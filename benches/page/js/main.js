/**
 * Starts the page: reads what is embedded in it, and hands it to the sections.
 *
 * @module main
 */

/** Says at the top of the page what went wrong. */
function showTrouble(message) {
  const notice = byId("trouble");
  notice.textContent = `Something went wrong: ${message}`;
  notice.hidden = false;
}

async function main() {
  const data = JSON.parse(byId("data").textContent);
  const module = Uint8Array.from(atob(byId("wasm").textContent.trim()), (character) => character.charCodeAt(0));
  const model = await loadModel(module, data.figures);
  let explorer = null;
  const predictor = new Predictor(module, data.figures, (answer) => explorer.answer(answer));
  explorer = startExplorer(model, predictor, data);
  startTheme(() => explorer.redraw());
  startRanks(model);
  if (data.study.length > 0) showStudy(data);
  if (data.sweep.length > 0) showSweep(data);
  if (data.records.length > 0) showBench(data);
  // For the console, and for the page's test.
  window.tilewise = model;
}

main().catch((error) => {
  showTrouble(error.message);
  throw error;
});
