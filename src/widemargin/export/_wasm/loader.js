// Makes a .wasm file of widemargin easy to call. `bytes` is its content, an ArrayBuffer or a
// Uint8Array; rows are arrays of values, in the order of `machine.featureNames`: numbers, texts
// where the pipeline takes texts, and null where a value is missing.
async function loadMachine(bytes) {
  const module = await WebAssembly.compile(bytes);
  const { exports } = await WebAssembly.instantiate(module, {});
  const [section] = WebAssembly.Module.customSections(module, "widemargin");
  // UTF-8 by hand: not every engine that runs WebAssembly has a TextDecoder.
  const percents = Array.from(new Uint8Array(section), (byte) => "%" + (256 + byte).toString(16).slice(1));
  const about = JSON.parse(decodeURIComponent(percents.join("")));
  const Numbers = about.dtype === "float32" ? Float32Array : Float64Array;
  const number = (value, place) => {
    if (value === null || value === undefined) return NaN;
    const known = about.texts[place];
    return known && typeof value === "string" ? known.indexOf(value) : Number(value);
  };
  const input = new Numbers(exports.memory.buffer, exports.input(), about.n_features);

  function answer(ask, row, length) {
    if (row.length !== about.n_features) {
      throw new RangeError(`A row has ${about.n_features} values, got ${row.length}.`);
    }
    input.set(Array.from(row, number));
    const result = ask();
    return result ?? Array.from(new Numbers(exports.memory.buffer, exports.output(), length));
  }

  const nClasses = about.classes === null ? 0 : about.classes.length;
  return {
    classes: about.classes,
    featureNames: about.feature_names,
    scores: (row) => answer(exports.scores, row, about.n_outputs),
    predict(row) {
      if (about.classes === null) return null; // a bare model has scores and nothing else
      const result = answer(exports.predict, row, nClasses);
      return about.tells_labels ? about.classes.filter((_, k) => result[k] === 1) : about.classes[result];
    },
    probabilities: (row) =>
      exports.probabilities ? answer(exports.probabilities, row, nClasses) : null,
  };
}
