// The report's own script: one filter for every table and card of rollouts, sorting of the last table, and
// the player. Everything else in the report is static; without this script all of it can be read.
(() => {
  const byId = (id) => document.getElementById(id);

  // ---- filter ----

  const filter = byId("filter");
  const table = byId("rollouts");
  const more = byId("more");
  const STEP = 500; // rows that a press of the button adds
  const rows = table ? [...table.tBodies[0].rows] : [];
  let limit = rows.filter((row) => !row.hidden).length; // of rows that are shown; a table of thousands takes seconds
  const groups = [
    ["failures", [...document.querySelectorAll("table.filtered tbody tr")]],
    ["cards", [...document.querySelectorAll("article.card")]],
  ].filter(([, items]) => items.length > 0);
  const texts = new Map();
  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };
  const apply = () => {
    const words = filter ? filter.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    const fits = (item) => words.every((word) => textOf(item).includes(word));
    const show = (items, most) => {
      let fitting = 0;
      for (const item of items) item.hidden = !fits(item) || ++fitting > most;
      return fitting;
    };
    const fitting = show(rows, limit);
    const counts = groups.map(([name, items]) => `${show(items, Infinity)} of ${items.length} ${name}`);
    byId("shown").textContent = words.length > 0 ? [`${fitting} of ${rows.length} rollouts`, ...counts].join(", ") : "";
    if (more) {
      more.hidden = fitting <= limit;
      more.textContent = `Show ${Math.min(STEP, fitting - limit)} more of ${fitting - limit}`;
    }
  };
  if (filter && (table || groups.length > 0)) {
    filter.hidden = false;
    filter.addEventListener("input", apply);
    filter.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { filter.value = ""; apply(); }
    });
    // A link may lead to what is hidden.
    const reveal = () => {
      const target = byId(location.hash.slice(1));
      if (target && target.closest("[hidden]")) {
        filter.value = "";
        limit = Math.max(limit, rows.indexOf(target) + 1);
        apply();
        target.scrollIntoView();
      }
    };
    window.addEventListener("hashchange", reveal);
    reveal();
  }
  if (more) {
    more.addEventListener("click", () => { limit += STEP; apply(); });
    apply();
  }

  // ---- sorting ----

  const sorting = () => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const value = (row, column) => {
      const text = row.cells[column].textContent.replace("▶", "").trim();
      const number = Number(text);
      return text === "" || Number.isNaN(number) ? text : number;
    };
    const compare = (x, y) => {
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      return x < y ? -1 : x > y ? 1 : 0;
    };
    const sort = (column) => {
      const up = heads[column].getAttribute("aria-sort") !== "ascending";
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
      rows.sort((a, b) => compare(value(a, column), value(b, column)) * (up ? 1 : -1));
      body.append(...rows);
      apply();
    };
    table.classList.add("sortable");
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      head.addEventListener("click", () => sort(column));
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter") sort(column);
      });
    });
  };
  if (table) sorting();

  // ---- player ----

  const packed = [...document.querySelectorAll("script[type='application/x-swerve-drive']")];
  const holder = new Map(packed.flatMap((script) => script.dataset.outcomes.split(" ").map((id) => [Number(id), script])));

  // The pictures that the page has of an outcome anyway.
  const pictures = (outcome) => {
    const strip = document.querySelector(`[data-frames="${outcome}"]`);
    const data = (image) => image.src.slice(image.src.indexOf(",") + 1);
    return [...(strip ? strip.querySelectorAll("figure[data-tick]") : [])].map((figure) => {
      const find = (name) => [...figure.querySelectorAll("img")].find((image) => image.alt.startsWith(name));
      const [front, bev] = [find("front"), find("bird")];
      return { tick: Number(figure.dataset.tick), front: front && data(front), bev: bev && data(bev) };
    });
  };

  const load = async (outcome) => {
    const drive = await unpack(holder.get(outcome));
    for (const rollout of drive.rollouts) {
      rollout.frames = rollout.outcome ? pictures(rollout.outcome) : [];
      rollout.generated = rollout.tier === "student" || rollout.tier === "teacher";
    }
    return drive;
  };

  const unpack = async (script) => {
    const bytes = Uint8Array.from(atob(script.textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };

  // Pictures that the cameras of a drive's rig saw at the tick nearest to one, of those that the page has.
  const seen = new Map([...document.querySelectorAll('script[type="application/x-swerve-frames"]')]
    .map((script) => [Number(script.dataset.outcome), script]));
  const frames = async (outcome, tick) => {
    if (!seen.has(outcome)) return { cameras: [] };
    const apart = (one) => Math.abs(one.tick - tick);
    return (await unpack(seen.get(outcome))).reduce((best, one) => (apart(one) < apart(best) ? one : best));
  };

  // Other drives of the same scenario: another seed, planner or world.
  const others = (outcome) => {
    const own = holder.get(outcome);
    return packed.filter((script) => script !== own && script.dataset.scenario === own.dataset.scenario).map((script) => {
      const id = Number(script.dataset.outcomes.split(" ")[0]);
      return { outcome: id, label: script.dataset.label, load: () => load(id) };
    });
  };

  let open = null;
  const closed = () => {
    if (!open) return;
    open.player.destroy();
    open.dialog.remove();
    open = null;
    if (location.hash.startsWith("#play=")) history.replaceState(null, "", location.pathname + location.search);
  };

  const play = async (outcome) => {
    closed();
    const dialog = document.createElement("dialog");
    const container = document.createElement("div");
    dialog.className = "p-dialog";
    dialog.setAttribute("aria-label", "player");
    dialog.append(container);
    document.body.append(dialog);
    const player = SwervePlayer.create(container, { others: others(outcome), frames: seen.size > 0 ? frames : null, onclose: () => dialog.close() });
    open = { dialog, player };
    dialog.addEventListener("close", () => { if (open && open.dialog === dialog) closed(); });
    dialog.showModal();
    container.focus();
    history.replaceState(null, "", `#play=${outcome}`);
    try {
      await player.show(await load(outcome), outcome);
    } catch (problem) {
      container.textContent = `This drive cannot be shown: ${problem.message}`;
    }
  };

  const fromAddress = () => {
    const match = /^#play=(\d+)$/.exec(location.hash);
    if (match && holder.has(Number(match[1]))) play(Number(match[1]));
  };

  if (holder.size > 0 && typeof DecompressionStream === "function") {
    for (const button of document.querySelectorAll(".play")) {
      button.hidden = false;
      button.setAttribute("aria-label", `play outcome ${button.dataset.play}`);
    }
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-play]");
      if (button) play(Number(button.dataset.play));
    });
    window.addEventListener("hashchange", fromAddress);
    fromAddress();
  }
})();
