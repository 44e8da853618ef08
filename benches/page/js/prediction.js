/**
 * Asks the model of L2 in a worker: a large product takes it up to seconds, and
 * sliders must move meanwhile.
 *
 * Only the newest question counts. While one is computed, later ones replace each
 * other; one that has been computed for long is given up for its successor.
 *
 * @module prediction
 */
class Predictor {
  /** Milliseconds that a question may have taken when another comes, not to be given up. */
  static PATIENCE = 400;

  #source;
  #start;
  #worker = null;
  #busySince = null;
  #next = null;
  #answered;

  /**
   * @param {Uint8Array} module  WebAssembly
   * @param {string[]} names  of the figures
   * @param {(answer: {query, figures, rowMajor}) => void} answered
   */
  constructor(module, names, answered) {
    // The worker's program is text of this page: a file opened from disk may not load
    // another as a worker.
    const program = `${loadModel}
      let model;
      onmessage = async ({ data }) => {
        model ??= await loadModel(data.module, data.names);
        const { query } = data;
        const figures = model.predict(query);
        const rowMajor = model.predict({ ...query, order: "row" });
        postMessage({ query, figures, rowMajor });
      };`;
    this.#source = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
    this.#start = { module, names };
    this.#answered = answered;
  }

  /** Asks; the answer comes unless another question does. */
  ask(query) {
    this.#next = query;
    if (this.#busySince === null) {
      this.#send();
    } else if (performance.now() - this.#busySince > Predictor.PATIENCE) {
      this.#worker.terminate();
      this.#worker = null;
      this.#send();
    }
  }

  #send() {
    if (!this.#worker) {
      this.#worker = new Worker(this.#source);
      this.#worker.onmessage = ({ data }) => this.#receive(data);
      this.#worker.onerror = (error) => showTrouble(`the model failed: ${error.message}`);
    }
    this.#busySince = performance.now();
    this.#worker.postMessage({ ...this.#start, query: this.#next });
    this.#next = null;
  }

  #receive(answer) {
    this.#busySince = null;
    if (this.#next) {
      this.#send();
    } else {
      this.#answered(answer);
    }
  }
}
