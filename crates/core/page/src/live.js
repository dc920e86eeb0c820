// Keeps the page of a job that has not ended up to date: follows the events of the job, writes them into the page as
// text, and reloads the page once the job has ended. Without scripts the page reloads itself.

const state = document.getElementById("live");
const word = document.querySelector(".verdict .word span");
const words = JSON.parse(state.dataset.stages);
const events = new URL(state.dataset.events, document.baseURI);
const reloaded = `warpgauge ended ${events.pathname}`;

// Pauses before another connection, milliseconds.
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;
// The pause before a reload after one that did not show the end.
const RELOAD_PAUSE = 3_000;

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

const counted = (number, one) => {
  const ending = number === 1 ? "" : one.endsWith("ch") ? "es" : "s";
  return `${grouped(number)} ${one}${ending}`;
};

const time = (ms) => {
  if (ms === 0) return "0\u202fms";
  const units = [[1e-3, 1e6, "ns"], [1, 1e3, "µs"], [1e3, 1, "ms"], [Infinity, 1e-3, "s"]];
  const [, factor, unit] = units.find(([below]) => Math.abs(ms) < below);
  return `${(ms * factor).toPrecision(4)}\u202f${unit}`;
};

const progress = ({ points, points_done: done = 0, trials_done: trials, statistics }) => {
  if (points !== undefined) return `${grouped(done)} of ${counted(points, state.dataset.points)} done`;
  if (trials === 0) return "no launch has been timed yet";
  const median = statistics === undefined ? "" : `, median ${time(statistics.median_ms)}`;
  return `${counted(trials, "launch")} timed${median}`;
};

const queue = (ahead) => {
  const most = Number(state.dataset.most);
  if (ahead === undefined) return "not in the queue";
  if (ahead === 0) return "no job of the same caller is before it";
  const number = ahead >= most ? `${grouped(most)} or more jobs` : counted(ahead, "job");
  return `${number} of the same caller before it`;
};

// A text that is the same is not written again, because a screen reader would read it again.
const write = (element, text) => {
  if (element && element.textContent !== text) element.textContent = text;
};
const part = (name) => state.querySelector(`[data-live="${name}"]`);

const show = (event) => {
  write(word, event.state.replaceAll("_", " "));
  write(part("stage"), words[event.stage] ?? event.stage);
  write(part("progress"), progress(event));
  write(part("queue"), queue(event.ahead));
  write(part("attempt"), counted(event.attempt, "time"));
};

let stream = null;
let timer = 0;
let pause = FIRST_PAUSE;

const stop = () => {
  clearTimeout(timer);
  stream?.close();
  stream = null;
};

const end = () => {
  stop();
  const again = sessionStorage.getItem(reloaded) !== null;
  sessionStorage.setItem(reloaded, "1");
  timer = setTimeout(() => location.reload(), again ? RELOAD_PAUSE : 0);
};

const follow = () => {
  stop();
  stream = new EventSource(events);
  stream.addEventListener("progress", (message) => {
    pause = FIRST_PAUSE;
    write(part("link"), "");
    show(JSON.parse(message.data));
  });
  stream.addEventListener("end", end);
  // The browser gives up on some errors, and repeats others without end at the same pace.
  stream.addEventListener("error", () => {
    stop();
    write(part("link"), "The server does not answer. The page tries again.");
    timer = setTimeout(follow, pause * (0.5 + Math.random() / 2));
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  });
};

// Browsers open few connections to a server, and a page that nobody sees needs none.
const attend = () => (document.hidden ? stop() : follow());
document.addEventListener("visibilitychange", attend);
addEventListener("pagehide", stop);
addEventListener("pageshow", (event) => event.persisted && attend());
attend();
