// A machine of widemargin in plain JavaScript: values of a row in; scores, probabilities and labels
// out. It knows nothing of the page around it. All arithmetic is of double precision.
"use strict";

const PLACES = { float32: Float32Array, float64: Float64Array, int32: Int32Array };

// A table is {shape, dtype, base64}; a sparse one has the numbers of its entries as well.
function decodeTable(table) {
  if (table === null) return null;
  const size = table.shape.reduce((product, length) => product * length, 1);
  const values = decodeNumbers(table.base64, table.dtype);
  if (table.places === undefined) return { shape: table.shape, values };
  const dense = new Float64Array(size);
  decodeNumbers(table.places, "int32").forEach((place, entry) => { dense[place] = values[entry]; });
  return { shape: table.shape, values: dense };
}

function decodeNumbers(base64, dtype) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
  return new PLACES[dtype](bytes.buffer);
}

// Numbers that JSON has not come as texts: "NaN", "Infinity", "-Infinity".
const decodeNumber = (value) => (value === null ? null : Number(value));

// ---- From the values of a row to numbers -------------------------------------------------------

function columnReader(column) {
  if (column.categories === null) {
    return (values) => {
      const value = values[column.source];
      return value === null || value === "" ? NaN : Number(value);
    };
  }
  const { values: known, are_texts: areTexts } = column.categories;
  const codes = column.categories.codes.map(decodeNumber);
  const missing = decodeNumber(column.categories.missing);
  const unknown = decodeNumber(column.categories.unknown);
  const places = new Map(known.map((value, place) => [value, codes[place]]));
  return (values) => {
    let value = values[column.source];
    if (value === undefined || (!areTexts && value === "")) value = null;
    if (value !== null && !areTexts) value = Number(value);
    const found = places.get(value);
    if (found !== undefined) return found;
    const code = value === null || Number.isNaN(value) ? missing : unknown;
    if (code === null) throw new RangeError(`The machine has not learned the value “${value}”.`);
    return code;
  };
}

const OPERATIONS = {
  pick(step) {
    const values = decodeTable(step.values).values;
    return (row) =>
      step.columns.map((column, place) => {
        const value = row[column];
        if (step.tests[place] === "copy") return value;
        if (step.tests[place] === "missing") return Number.isNaN(value) ? 1 : 0;
        if (Number.isNaN(value)) return NaN;
        return value === values[place] ? 1 : 0;
      });
  },
  fill(step) {
    const values = decodeTable(step.values).values;
    const missing = decodeNumber(step.missing);
    const isMissing = Number.isNaN(missing) ? Number.isNaN : (value) => value === missing;
    return (row) =>
      row.map((value, place) =>
        isMissing(value) && !Number.isNaN(values[place]) ? values[place] : value);
  },
  clip(step) {
    const low = decodeTable(step.low).values;
    const high = decodeTable(step.high).values;
    return (row) => row.map((value, place) => Math.min(Math.max(value, low[place]), high[place]));
  },
  normalise(step) {
    const size = {
      l1: (part) => part.reduce((sum, value) => sum + Math.abs(value), 0),
      l2: (part) => Math.sqrt(part.reduce((sum, value) => sum + value * value, 0)),
      max: (part) => part.reduce((most, value) => Math.max(most, Math.abs(value)), 0),
    }[step.norm];
    const last = step.first + step.count;
    return (row) => {
      const norm = size(row.slice(step.first, last)) || 1;
      return row.map((value, place) =>
        place >= step.first && place < last ? value / norm : value);
    };
  },
  project(step) {
    const centre = decodeTable(step.centre).values;
    const matrix = decodeTable(step.matrix);
    const shift = decodeTable(step.shift).values;
    const [count] = matrix.shape;
    return (row) => {
      const moved = centre.map((value, place) => row[step.first + place] - value);
      const mapped = product(moved, matrix).map((value, place) => value + shift[place]);
      return [...row.slice(0, step.first), ...mapped, ...row.slice(step.first + count)];
    };
  },
  scale(step) {
    const centre = decodeTable(step.centre).values;
    const factor = decodeTable(step.factor).values;
    return (row) => row.map((value, place) => (value - centre[place]) * factor[place]);
  },
};

// ---- From numbers to scores --------------------------------------------------------------------

// row · matrix, as an array.
function product(row, matrix) {
  const [height, width] = matrix.shape;
  const sums = new Array(width).fill(0);
  for (let i = 0; i < height; i += 1) {
    if (row[i] === 0) continue;
    for (let j = 0; j < width; j += 1) sums[j] += row[i] * matrix.values[i * width + j];
  }
  return sums;
}

// The sum over features of term(entry of the row, entry of the vector), for each vector.
function sumsOverFeatures(row, vectors, term) {
  const [count, width] = vectors.shape;
  const sums = new Array(count);
  for (let j = 0; j < count; j += 1) {
    let sum = 0;
    for (let i = 0; i < width; i += 1) sum += term(row[i], vectors.values[j * width + i]);
    sums[j] = sum;
  }
  return sums;
}

const TERMS = {
  product: (x, b) => x * b,
  square: (x, b) => (x - b) * (x - b),
  size: (x, b) => Math.abs(x - b),
  chiSquare: (x, b) => (x + b === 0 ? 0 : ((x - b) * (x - b)) / (x + b)),
};

// Each entry: the kernel's data and its vectors in; a function of a row that gives its values out.
const KERNELS = {
  linear: (_, vectors) => (row) => sumsOverFeatures(row, vectors, TERMS.product),
  poly: ({ gamma, degree, coef0 }, vectors) => (row) =>
    sumsOverFeatures(row, vectors, TERMS.product).map((sum) => (gamma * sum + coef0) ** degree),
  sigmoid: ({ gamma, coef0 }, vectors) => (row) =>
    sumsOverFeatures(row, vectors, TERMS.product).map((sum) => Math.tanh(gamma * sum + coef0)),
  rbf: ({ gamma }, vectors) => (row) =>
    sumsOverFeatures(row, vectors, TERMS.square).map((sum) => Math.exp(-gamma * sum)),
  laplacian: ({ gamma }, vectors) => (row) =>
    sumsOverFeatures(row, vectors, TERMS.size).map((sum) => Math.exp(-gamma * sum)),
  chi2: ({ gamma }, vectors) => (row) =>
    sumsOverFeatures(row, vectors, TERMS.chiSquare).map((sum) => Math.exp(-gamma * sum)),
  precomputed: ({ training_rows: numbers }) => (row) => numbers.map((number) => row[number]),
  adaptive(kernel, vectors) {
    const widths = decodeTable(kernel.widths).values;
    const metric = decodeTable(kernel.metric);
    const [count, width] = vectors.shape;
    return (row) => {
      const values = new Array(count);
      for (let j = 0; j < count; j += 1) {
        let gaps = row.map((value, i) => value - vectors.values[j * width + i]);
        if (metric !== null) {
          gaps = metric.shape.length === 2
            ? product(gaps, metric)
            : gaps.map((gap, i) => gap * metric.values[i]);
        }
        values[j] = Math.exp(-widths[j] * gaps.reduce((sum, gap) => sum + gap * gap, 0));
      }
      return values;
    };
  },
  sum({ parts }, vectors) {
    const each = parts.map(({ kernel, columns, weight }) => {
      const [count, width] = vectors.shape;
      const entries = new Float64Array(count * columns.length);
      for (let j = 0; j < count; j += 1) {
        columns.forEach((column, i) => {
          entries[j * columns.length + i] = vectors.values[j * width + column];
        });
      }
      const values = KERNELS[kernel.kind](kernel, { shape: [count, columns.length], values: entries });
      return (row) => values(columns.map((column) => row[column])).map((value) => weight * value);
    });
    return (row) => each.map((values) => values(row))
      .reduce((sums, values) => sums.map((sum, j) => sum + values[j]));
  },
};

function scorer(model) {
  const intercept = decodeTable(model.intercept).values;
  const coef = decodeTable(model.coef);
  const linear = decodeTable(model.linear);
  const values = model.kernel === null
    ? (row) => row
    : KERNELS[model.kernel.kind](model.kernel, decodeTable(model.basis));
  return (row) => {
    const found = values(row);
    const scores = product(found, coef).map((sum, output) => sum + intercept[output]);
    if (linear !== null) product(row, linear).forEach((sum, output) => { scores[output] += sum; });
    return { values: found, scores };
  };
}

// ---- From scores to answers --------------------------------------------------------------------

const logistic = (score) =>
  (score >= 0 ? 1 / (1 + Math.exp(-score)) : Math.exp(score) / (1 + Math.exp(score)));

function normalised(parts) {
  const total = parts.reduce((sum, part) => sum + part, 0);
  return parts.map((part) => part / total);
}

function softmax(scores) {
  const top = Math.max(...scores);
  return normalised(scores.map((score) => Math.exp(score - top)));
}

// log(logistic(score)), which does not vanish where the score is far below zero.
const logLogistic = (score) => Math.min(score, 0) - Math.log1p(Math.exp(-Math.abs(score)));

function answerReader(readout) {
  const thresholds = decodeTable(readout.thresholds);
  const calibration = decodeTable(readout.calibration);
  const count = readout.n_classes;

  function probabilities(scores) {
    if (calibration !== null) {
      const { values } = calibration;
      return scores.map((score, label) => {
        const slope = values[label];
        return logistic((slope === 0 ? 0 : slope * score) + values[count + label]);
      });
    }
    if (readout.link === null) return null;
    if (readout.kind === "multilabel") return scores.map(logistic);
    if (readout.kind === "binary") return [logistic(-scores[0]), logistic(scores[0])];
    return softmax(readout.link === "softmax" ? scores : scores.map(logLogistic));
  }

  // The numbers of the classes or labels that are answered.
  function answers(scores) {
    if (readout.kind === "binary") return [scores[0] > 0 ? 1 : 0];
    if (readout.kind === "multiclass") return [scores.indexOf(Math.max(...scores))];
    const limits = thresholds === null ? new Float64Array(count) : thresholds.values;
    if (readout.kind === "two_step") {
      const both = scores[0] > limits[0] && scores[0] < limits[1];
      return [0, 1].filter((label) => both || (scores[1] > 0) === (label === 0));
    }
    return scores.map((_, label) => label).filter((label) => scores[label] > limits[label]);
  }

  return { probabilities, answers };
}

// A function of the values of a row, in the order in which the machine takes them.
function makePredictor(machine) {
  const readers = machine.columns.map(columnReader);
  const steps = machine.operations.map((step) => OPERATIONS[step.kind](step));
  const score = scorer(machine.model);
  const read = answerReader(machine.readout);
  return (values) => {
    const row = steps.reduce((numbers, step) => step(numbers), readers.map((reader) => reader(values)));
    const { values: kernelValues, scores } = score(row);
    return {
      kernelValues,
      scores,
      probabilities: read.probabilities(scores),
      answers: read.answers(scores),
    };
  };
}
