// The machine in the page: fields or a drawing in, scores out.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("live-data").textContent);
  const predict = makePredictor(data.machine);
  const MOST_SCORES = 12;
  const MOST_SIMILAR = 5;
  const MANY_FIELDS = 12;
  const find = (id) => document.getElementById(id);
  const showers = []; // functions that bring inputs in line with the values
  let values = [];

  function make(name, properties = {}, ...children) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  }

  // ---- Results ---------------------------------------------------------------------------------

  const shown = (score) => (Math.abs(score) >= 1000 ? score.toFixed(0) : score.toFixed(3));
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  // A score for each class; two classes have one score, which speaks for the second.
  const scoreOf = (result, number) =>
    (result.scores.length < data.classes.length
      ? (number === 1 ? 1 : -1) * result.scores[0]
      : result.scores[number]);

  function showAnswer(result) {
    const names = result.answers.map((number) => data.classes[number]);
    const answer = find("live-answer");
    answer.replaceChildren(names.length ? names.join(", ") : "none of the labels");
    let words = data.tellsLabels ? "the labels that the machine finds" : "is the answer of the machine";
    if (result.probabilities !== null && !data.tellsLabels) {
      words += `, with probability ${percent(result.probabilities[result.answers[0]])}`;
    }
    answer.append(make("small", {}, words));
  }

  function showScores(result) {
    const numbers = data.classes.map((_, number) => number);
    if (numbers.length > MOST_SCORES) {
      numbers.sort((a, b) => scoreOf(result, b) - scoreOf(result, a)).length = MOST_SCORES;
    }
    const all = data.classes.map((_, number) => scoreOf(result, number));
    const low = Math.min(...all);
    const span = Math.max(...all) - low || 1;
    find("live-scores").replaceChildren(...numbers.map((number) => {
      const score = scoreOf(result, number);
      const has = result.probabilities !== null;
      const share = has ? result.probabilities[number] : (score - low) / span;
      const head = make("th", { scope: "row" }, data.classes[number]);
      const bar = make("td", { className: "meter" }, make("span", {}, has ? percent(share) : shown(score)));
      bar.style.setProperty("--share", Math.min(Math.max(share, 0), 1).toFixed(4));
      bar.dataset.value = has ? share : score;
      const row = make("tr", {}, head, bar);
      if (result.answers.includes(number)) row.className = "chosen";
      row.dataset.score = score;
      if (has) row.append(make("td", { className: "number" }, shown(score)));
      return row;
    }));
    const left = data.classes.length - numbers.length;
    find("live-more").textContent = left > 0 ? `The ${numbers.length} largest of ${data.classes.length} scores.` : "";
  }

  function showSimilar(result) {
    const { vectors } = data;
    if (!vectors || data.machine.model.kernel === null) return;
    const order = result.kernelValues.map((_, number) => number)
      .sort((a, b) => result.kernelValues[b] - result.kernelValues[a]).slice(0, MOST_SIMILAR);
    const items = order.map((number) => {
      const item = make("li");
      if (vectors.images) {
        item.append(make("img", { src: vectors.images[number], alt: `Vector ${number + 1}`, width: 52 }));
      }
      const name = vectors.images ? vectors.speakFor[number] : `${number + 1}: ${vectors.speakFor[number]}`;
      item.append(make("span", {}, make("b", {}, name), ` ${shown(result.kernelValues[number])}`));
      return item;
    });
    find("live-similar").replaceChildren(
      make("p", { className: "quiet" }, "The vectors most like it, whom they speak for, and how like it they are:"),
      make("ul", { className: "similar" }, ...items),
    );
  }

  function show(result) {
    showAnswer(result);
    showScores(result);
    showSimilar(result);
  }

  function update(origin = null) {
    showers.forEach(([owner, shower]) => { if (owner !== origin) shower(); });
    try {
      show(predict(values));
    } catch (error) {
      find("live-answer").textContent = error.message;
      find("live-scores").replaceChildren();
    }
  }

  // ---- Fields ----------------------------------------------------------------------------------

  function numberField(field) {
    const id = `field-${field.source}`;
    const { low, high, step } = field;
    const number = make("input", { type: "number", id, step: "any" });
    const slider = make("input", { type: "range", min: low, max: high, step });
    slider.setAttribute("aria-label", `${field.name}, slider`);
    const read = (input) => {
      values[field.source] = input.value === "" ? null : Number(input.value);
      update(input);
    };
    number.addEventListener("input", () => read(number));
    slider.addEventListener("input", () => read(slider));
    showers.push([number, () => { number.value = values[field.source] ?? ""; }]);
    showers.push([slider, () => { slider.value = values[field.source] ?? low; }]);
    const label = make("label", { htmlFor: id }, field.name);
    return make("div", { className: "field" }, label, number, slider);
  }

  function categoryField(field) {
    const id = `field-${field.source}`;
    const options = field.values.map((value, place) =>
      make("option", { value: String(place) }, value === null ? "(missing)" : value));
    if (field.allowsOther) options.push(make("option", { value: "other" }, "(another)"));
    const select = make("select", { id }, ...options);
    select.addEventListener("input", () => {
      values[field.source] = select.value === "other" ? "\u0000" : field.values[Number(select.value)];
      update(select);
    });
    showers.push([select, () => {
      const value = values[field.source];
      const place = field.values.indexOf(value === null ? null : String(value));
      select.value = place >= 0 ? String(place) : "other";
    }]);
    return make("div", { className: "field" }, make("label", { htmlFor: id }, field.name), select);
  }

  function makeFields() {
    const all = data.fields.map((field) => (field.kind === "number" ? numberField(field) : categoryField(field)));
    const list = make("div", { className: "fields", tabIndex: 0 }, ...all);
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", "Values of the row");
    if (all.length <= MANY_FIELDS) return [list];
    const search = make("input", { type: "search", className: "find", placeholder: "Find a column" });
    search.setAttribute("aria-label", "Find a column");
    search.addEventListener("input", () => {
      const wanted = search.value.toLowerCase();
      all.forEach((field, place) => { field.hidden = !data.fields[place].name.toLowerCase().includes(wanted); });
    });
    return [search, list];
  }

  // ---- A drawing -------------------------------------------------------------------------------

  function makeEasel({ height, width, low, high }) {
    const canvas = make("canvas", { width, height, tabIndex: 0 });
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label",
      `Drawing of ${width} by ${height} pixels. Arrow keys move, space draws, Delete clears.`);
    const brush = canvas.getContext("2d");
    let place = { x: Math.floor(width / 2), y: Math.floor(height / 2) };
    let drawing = false;
    let hasFocus = false;

    function shower() {
      const picture = brush.createImageData(width, height);
      for (let pixel = 0; pixel < width * height; pixel += 1) {
        const shade = 255 * (1 - ((values[pixel] ?? low) - low) / (high - low || 1));
        picture.data.set([shade, shade, shade, 255], 4 * pixel);
      }
      if (hasFocus) picture.data.set([220, 90, 60, 255], 4 * (place.y * width + place.x));
      brush.putImageData(picture, 0, 0);
    }

    // Ink spreads about a fourteenth of the picture, so that a stroke is as thick as a pen's.
    function draw(x, y) {
      const radius = Math.max(0.75, width / 14);
      for (let row = 0; row < height; row += 1) {
        for (let column = 0; column < width; column += 1) {
          const distance = Math.hypot(column + 0.5 - x, row + 0.5 - y) / radius;
          const ink = Math.min(1, Math.max(0, 1.6 - distance));
          const pixel = row * width + column;
          if (ink > 0) values[pixel] = Math.max(values[pixel], low + ink * (high - low));
        }
      }
      update();
    }

    function clear() {
      values.fill(low);
      update();
    }

    const spot = (event) => {
      const box = canvas.getBoundingClientRect();
      return [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * height / box.height];
    };
    canvas.addEventListener("pointerdown", (event) => {
      drawing = true;
      canvas.setPointerCapture(event.pointerId);
      draw(...spot(event));
    });
    canvas.addEventListener("pointermove", (event) => { if (drawing) draw(...spot(event)); });
    canvas.addEventListener("pointerup", () => { drawing = false; });
    canvas.addEventListener("focus", () => { hasFocus = canvas.matches(":focus-visible"); shower(); });
    canvas.addEventListener("blur", () => { hasFocus = false; shower(); });
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    canvas.addEventListener("keydown", (event) => {
      if (moves[event.key]) {
        const [x, y] = moves[event.key];
        hasFocus = true;
        place = { x: Math.min(Math.max(place.x + x, 0), width - 1), y: Math.min(Math.max(place.y + y, 0), height - 1) };
        shower();
      } else if (event.key === " ") draw(place.x + 0.5, place.y + 0.5);
      else if (event.key === "Delete" || event.key === "Backspace") clear();
      else return;
      event.preventDefault();
    });
    showers.push([canvas, shower]);
    const button = make("button", { type: "button" }, "Clear the drawing");
    button.addEventListener("click", clear);
    return make("div", { className: "easel" }, canvas, button);
  }

  // ---- The row as a line -----------------------------------------------------------------------

  function lineOf(row) {
    return row.map((value) => {
      if (value === null || value === undefined) return "";
      const text = String(value);
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    }).join(",");
  }

  function valuesOf(line) {
    const cells = [...line.trim().matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)]
      .map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain.trim());
    if (cells.length !== data.nFeatures) {
      throw new RangeError(`A row has ${data.nFeatures} values; the line has ${cells.length}.`);
    }
    const texts = new Set(data.fields.filter((field) => field.kind === "category").map((field) => field.source));
    return cells.map((cell, place) => {
      if (cell === "") return null;
      if (texts.has(place) || Number.isNaN(Number(cell))) return cell;
      return Number(cell);
    });
  }

  function prepareLine() {
    const area = find("live-line");
    const error = find("live-line-error");
    area.addEventListener("change", () => {
      try {
        values = valuesOf(area.value);
        error.textContent = "";
        update(area);
      } catch (problem) {
        error.textContent = problem.message;
      }
    });
    showers.push([area, () => { area.value = lineOf(values); error.textContent = ""; }]);
  }

  // ---- Begin -----------------------------------------------------------------------------------

  function expanded(example) {
    if (example.places === undefined) return [...example.values];
    const row = new Array(data.nFeatures).fill(0);
    example.places.forEach((place, entry) => { row[place] = example.values[entry]; });
    return row;
  }

  function begin() {
    const heads = data.machine.readout.link !== null || data.machine.readout.calibration !== null
      ? [data.tellsLabels ? "Label" : "Class", "Probability", "Score"]
      : [data.tellsLabels ? "Label" : "Class", "Score"];
    find("live-heads").append(...heads.map((head) => make("th", { scope: "col" }, head)));
    find("live-inputs").append(...(data.image ? [makeEasel(data.image)] : makeFields()));
    prepareLine();
    const choice = find("live-example");
    choice.append(...data.examples.map((example, number) =>
      make("option", { value: String(number) }, `${number + 1}: ${example.name}`)));
    choice.addEventListener("change", () => {
      values = expanded(data.examples[Number(choice.value)]);
      update();
    });
    values = expanded(data.examples[0]);
    update();
  }

  begin();
  window.widemargin = { predict, examples: data.examples.map(expanded), values: () => values };
})();
