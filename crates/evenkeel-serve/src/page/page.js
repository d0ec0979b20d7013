// The page: sends an image to /judge, shows the verdict, and sends it again when a control moves. Nothing is loaded from elsewhere.
"use strict";

const $ = (id) => document.getElementById(id);
const state = { image: null, name: "", title: "", address: "", metadata: null, running: null, timer: null };

const headers = () => ($("token").value ? { Authorization: `Bearer ${$("token").value}` } : {});

async function get(path) {
  const answer = await fetch(path, { headers: headers() });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error), { status: answer.status });
  return body;
}

function say(text, kind) {
  $("verdict").textContent = text;
  $("verdict").dataset.state = kind;
}

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(({ name, about }) => {
    const option = document.createElement("option");
    option.value = name;
    option.textContent = name;
    option.title = about;
    option.selected = name === chosen;
    return option;
  }));
}

const entry = (table, name) => state.metadata.evenkeel[table].find((one) => one.name === name);
const knob = (name) => entry("defences", $("defence").value)?.knobs.find((one) => one.name === name);

// Which sliders the chosen defence reads, with its own defaults.
function sliders() {
  for (const name of ["epsilon", "steps"]) {
    const own = knob(name);
    $(`${name}-row`).hidden = !own;
    if (own) $(name).value = name === "epsilon" ? parseFloat(own.default) : Math.min(own.default, 40);
  }
  labels();
}

function labels() {
  $("epsilon-value").textContent = `${$("epsilon").value}/255`;
  $("steps-value").textContent = $("steps").value;
}

async function chooseModel() {
  state.metadata = await get(`/v2/models/${$("model").value}`);
  const own = state.metadata.evenkeel;
  const usual = own.default.defence?.kind ?? (own.requests_may_choose ? own.usual_defence : "none");
  options($("defence"), own.defences, usual);
  options($("answer"), own.answers, own.default.answer?.kind ?? "plain");
  for (const id of ["defence", "answer", "epsilon", "steps"]) $(id).disabled = !own.requests_may_choose;
  $("pair").hidden = !own.example;
  for (const which of ["clean", "attacked"]) {
    const picture = $(which).querySelector("img");
    if (own.example) picture.src = `/examples/${state.metadata.name}/${which}.png`;
    else picture.removeAttribute("src");
  }
  sliders();
}

// The fields of the form, which are also the arguments of the command.
function fields() {
  const all = {};
  if (state.metadata.evenkeel.requests_may_choose) {
    all.defence = $("defence").value;
    if (knob("epsilon")) all.epsilon = `${$("epsilon").value}/255`;
    if (knob("steps")) all.steps = $("steps").value;
    all.answer = $("answer").value;
  }
  all.seed = $("seed").value || "0";
  all.always = String($("always").checked);
  return all;
}

function command(all) {
  const word = (text) => (/^[\w.,:/@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const parts = Object.entries(all).map(([name, value]) => `-F ${word(`${name}=${value}`)}`);
  const token = $("token").value ? ` -H 'Authorization: Bearer TOKEN'` : "";
  // a built-in picture is on no disk of the reader's, so it is fetched first
  const [first, image] = state.address ? [`curl -s ${location.origin}${state.address} | `, "-"] : ["", state.name || "street.jpg"];
  $("curl").textContent =
    `${first}curl ${location.origin}/v2/models/${state.metadata.name}/judge${token} \\\n  -F ${word(`image=@${image}`)} ${parts.join(" ")}`;
}

// A number keeps its unit on its line.
const unbroken = (words) => words.replaceAll(" %", "\u00a0%");

function show(verdict) {
  const pictures = verdict.pictures;
  $("frames").hidden = false;
  $("input").src = pictures.input;
  $("input").alt = `The input: ${state.title}`;
  $("input-words").textContent = state.title;
  for (const which of ["plain", "defended"]) {
    $(which).src = pictures[which].png;
    $(which).alt = `The ${which} answer: ${pictures[which].words}`;
    $(`${which}-words`).textContent = unbroken(pictures[which].words);
  }
  $("under").src = pictures.input;
  $("heat").hidden = !pictures.disagreement;
  $("opacity").parentElement.hidden = !pictures.disagreement;
  if (pictures.disagreement) {
    $("heat").src = pictures.disagreement;
    $("heat").alt = "Bright where the answers for the views differ";
    $("heat-words").textContent = `score ${verdict.score.toFixed(4)}`;
  } else {
    const said = pictures.views.map((view) => view.words);
    const same = said.filter((words) => words === pictures.plain.words).length;
    $("heat-words").textContent = `${same} of ${said.length} views say the same; score ${verdict.score.toFixed(4)}`;
  }
  $("change").src = pictures.change;
  const names = new Map([...pictures.plain.legend, ...pictures.defended.legend].map((one) => [one.name, one.colour]));
  $("legend").replaceChildren(...[...names].map(([name, colour]) => {
    const line = document.createElement("li");
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of [["width", "100%"], ["height", "100%"], ["fill", `rgb(${colour.join(",")})`]]) square.setAttribute(key, value);
    swatch.setAttribute("aria-hidden", "true");
    swatch.append(square);
    line.append(swatch, name);
    return line;
  }));
  $("views").replaceChildren(...pictures.views.map((view, number) => {
    const figure = document.createElement("figure");
    const picture = document.createElement("img");
    picture.src = view.png;
    picture.alt = `View ${number + 1}: ${view.words}`;
    const words = document.createElement("p");
    words.textContent = unbroken(view.words);
    figure.append(picture, words);
    return figure;
  }));
  say(verdict.sentence, verdict.alarm === null ? "idle" : verdict.alarm ? "alarm" : "quiet");
}

async function judge() {
  if (!state.image) return;
  state.running?.abort(); // the server drops work that nobody waits for
  const running = (state.running = new AbortController());
  const all = fields();
  command(all);
  const form = new FormData();
  form.append("image", state.image, "image");
  for (const [name, value] of Object.entries({ ...all, pictures: "true" })) form.append(name, value);
  $("frames").classList.add("busy");
  try {
    const path = `/v2/models/${state.metadata.name}/judge`;
    const answer = await fetch(path, { method: "POST", body: form, headers: headers(), signal: running.signal });
    const verdict = await answer.json();
    if (!answer.ok) throw new Error(verdict.error);
    show(verdict);
  } catch (error) {
    if (error.name === "AbortError") return;
    say(`Not answered: ${error.message}`, "error");
  }
  if (state.running === running) $("frames").classList.remove("busy");
}

function soon() {
  labels();
  if (state.metadata) command(fields());
  clearTimeout(state.timer);
  state.timer = setTimeout(judge, 250);
}

function take(file, title, address) {
  if (!file) return;
  state.image = file;
  state.address = address ?? "";
  state.name = file.name ?? "";
  state.title = title ?? file.name;
  say("Looking at it through several views…", "idle");
  judge();
}

async function example(which) {
  const address = `/examples/${state.metadata.name}/${which}.png`;
  const answer = await fetch(address);
  const file = new File([await answer.blob()], `${which}.png`, { type: "image/png" });
  take(file, which === "clean" ? "a clean picture" : "the same picture, attacked", address);
}

async function start() {
  const server = await get("/v2");
  $("server").textContent = `${server.name} ${server.version}`;
  const { models } = await get("/v2/models");
  options($("model"), models.map((name) => ({ name, about: "" })), models[0]);
  await chooseModel();
  command(fields());
}

async function begin() {
  try {
    await start();
    $("token-row").hidden = !$("token").value;
  } catch (error) {
    $("token-row").hidden = error.status !== 401;
    say(error.status === 401 ? "This server asks for a token." : `The server does not answer: ${error.message}`, "error");
  }
}

$("token").addEventListener("change", begin);
$("model").addEventListener("change", async () => {
  await chooseModel();
  Object.assign(state, { image: null, name: "", address: "" });
  $("frames").hidden = true;
  $("legend").replaceChildren();
  say("Choose an image.", "idle");
  command(fields());
});
$("defence").addEventListener("change", () => { sliders(); soon(); });
for (const id of ["epsilon", "steps", "answer", "seed", "always"]) $(id).addEventListener("input", soon);
$("opacity").addEventListener("input", () => { $("heat").style.opacity = $("opacity").value / 100; });
$("heat").style.opacity = 0.65;
$("clean").addEventListener("click", () => example("clean"));
$("attacked").addEventListener("click", () => example("attacked"));
$("file").addEventListener("change", () => take($("file").files[0]));
$("drop").addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); $("file").click(); }
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  $("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") take(event.dataTransfer.files[0]);
  });
}
$("copy").addEventListener("click", () => {
  // browsers offer the clipboard only to pages of this machine or over TLS; elsewhere the text is selected
  if (navigator.clipboard) navigator.clipboard.writeText($("curl").textContent);
  else getSelection().selectAllChildren($("curl"));
});
begin();
