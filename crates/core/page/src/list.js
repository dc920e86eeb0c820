// Keeps the list of jobs up to date: loads the same page again while the tab is visible, copies the cells of the listed
// jobs that changed, and counts jobs that are not listed yet. Nothing in the loaded page runs. Without scripts the page
// reloads itself.

const list = document.getElementById("jobs");
const link = document.getElementById("new-jobs");
const lost = document.getElementById("lost");

// Pauses, milliseconds: while a listed job runs, otherwise, and at most after errors.
const RUNNING_PAUSE = 3_000;
const IDLE_PAUSE = 15_000;
const LONGEST_PAUSE = 30_000;

// A text that is the same is not written again, because a screen reader would read it again.
const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
const rows = (page) => new Map([...page.querySelectorAll("tr[data-job]")].map((row) => [row.dataset.job, row]));

const copy = (row, newer) => {
  [...row.cells].forEach((cell, index) => {
    const other = newer.cells[index];
    if (other === undefined || cell.isEqualNode(other)) return;
    const focused = cell.contains(document.activeElement);
    cell.replaceChildren(...document.importNode(other, true).childNodes);
    if (focused) cell.querySelector("a")?.focus({ preventScroll: true });
  });
};

const leave = (row) => {
  const verdict = row.querySelector(".tag");
  verdict.className = "tag plain";
  write(verdict, "not listed any more");
};

const show = (page) => {
  const [shown, newer] = [rows(document), rows(page)];
  const ids = [...newer.keys()];
  const known = ids.findIndex((id) => shown.has(id));
  const added = known < 0 ? ids.length : known;
  const hasMore = page.querySelector("a[rel=next]") !== null;
  const kept = [...shown.keys()].map((id) => newer.has(id));
  // New jobs move the last ones to the next page. Others have left the list, because they do not match its filter.
  const last = hasMore ? kept.lastIndexOf(true) : kept.length;
  [...shown.entries()].forEach(([id, row], index) => {
    if (newer.has(id)) copy(row, newer.get(id));
    else if (index < last) leave(row);
  });
  link.hidden = added === 0;
  const number = known < 0 && hasMore ? `${added} or more` : added;
  write(link, added === 0 ? "" : added === 1 ? "1 new job" : `${number} new jobs`);
};

let request = null;
let timer = 0;
let failures = 0;

const stop = () => {
  clearTimeout(timer);
  request?.abort();
  request = null;
};

const load = () => {
  stop();
  const own = new XMLHttpRequest();
  request = own;
  own.open("GET", location.href);
  own.responseType = "document";
  own.timeout = LONGEST_PAUSE;
  own.setRequestHeader("accept", "text/html");
  own.addEventListener("loadend", () => {
    if (request !== own) return;
    const newest = own.status === 200 ? own.response?.getElementById("jobs") : null;
    failures = newest ? 0 : failures + 1;
    if (newest) show(own.response);
    write(lost, newest ? "" : "The server does not answer. The page tries again.");
    const pause = newest?.dataset.running === "0" ? IDLE_PAUSE : RUNNING_PAUSE;
    timer = setTimeout(load, Math.min(pause * 2 ** failures, LONGEST_PAUSE) * (0.75 + Math.random() / 4));
  });
  own.send();
};

const wait = () => {
  stop();
  timer = setTimeout(load, list.dataset.running === "0" ? IDLE_PAUSE : RUNNING_PAUSE);
};

// Nobody sees a hidden tab. One that is shown again is brought up to date at once.
document.addEventListener("visibilitychange", () => (document.hidden ? stop() : load()));
addEventListener("pagehide", stop);
addEventListener("pageshow", (event) => event.persisted && load());
if (!document.hidden) wait();
