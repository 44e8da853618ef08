/**
 * The crate `tilewise-explorer`, ready to be called: its C interface is
 * `explorer/src/abi.rs`.
 *
 * A query is `{m, n, k, blockM, blockN, blockK, elementBytes, order, gpu, sms}`, with
 * the order by its name on the command line and the GPU by its place in the table.
 *
 * The function uses nothing outside itself: a worker runs its text too
 * (prediction.js).
 *
 * @module model
 * @param {Uint8Array} module  WebAssembly
 * @param {string[]} names  of the model's figures, in the order of its numbers
 */
async function loadModel(module, names) {
  const { instance } = await WebAssembly.instantiate(module);
  const rust = instance.exports;
  const NAME_BYTES = 32;

  /** Calls `entry`; the `length` numbers that it leaves, or null where it refuses. */
  function call(entry, query, Numbers, length) {
    const name = new TextEncoder().encode(query.order);
    if (name.length > NAME_BYTES) return null;
    new Uint8Array(rust.memory.buffer, rust.order_name(), NAME_BYTES).set(name);
    const { m, n, k, blockM, blockN, blockK, elementBytes, gpu, sms } = query;
    const address = rust[entry](m, n, k, blockM, blockN, blockK, elementBytes, gpu, sms, name.length);
    // A copy: the next call takes the memory back. (Growing replaced the buffer.)
    return address === 0 ? null : new Numbers(rust.memory.buffer, address, length).slice();
  }

  /** C in tiles, and the k-blocks. */
  function grid({ m, n, k, blockM, blockN, blockK }) {
    return { rows: Math.ceil(m / blockM), cols: Math.ceil(n / blockN), depth: Math.ceil(k / blockK) };
  }

  return {
    grid,

    /** Row and column of each tile, one after the other, in the order they run. */
    tiles(query) {
      const { rows, cols } = grid(query);
      return call("tile_order", query, Uint32Array, 2 * rows * cols);
    },

    /** For each wave: its tiles, loads without a cache, and distinct blocks of A and of B. */
    waves(query) {
      const { rows, cols } = grid(query);
      const length = Math.ceil((rows * cols) / query.sms);
      const numbers = call("wave_loads", query, Float64Array, 4 * length);
      return numbers && Array.from({ length }, (_, wave) => {
        const [tiles, uncached, a, b] = numbers.subarray(4 * wave);
        return { tiles, uncached, a, b, shared: a + b };
      });
    },

    /**
     * What each rank does when, of `{operation, m, n, k, ranks, chunks}`: the operation by its
     * place, and 0 chunks for as many as the estimate chooses. Times are in seconds, and rows those
     * of C. Null where the layer is refused.
     */
    ranks({ operation, m, n, k, ranks, chunks: asked }) {
      const address = rust.rank_order(operation, m, n, k, ranks, asked);
      if (address === 0) return null;
      const [HEAD, PER_STEP] = [4, 7];
      const [chunks, length, seconds, alone] = new Float64Array(rust.memory.buffer, address, HEAD);
      const numbers = new Float64Array(rust.memory.buffer, address, HEAD + length * PER_STEP).slice(HEAD);
      const steps = Array.from({ length }, (_, step) => {
        const [rank, kind, owner, begin, end, first, last] = numbers.subarray(step * PER_STEP);
        return { rank, isCopy: kind === 1, owner, begin, end, first, last };
      });
      return { chunks, seconds, alone, steps };
    },

    /** The model's figures by name; SI units. */
    predict(query) {
      const numbers = call("predict", query, Float64Array, names.length);
      return numbers && Object.fromEntries(names.map((name, at) => [name, numbers[at]]));
    },
  };
}
