"use strict";
// The page asks /v1/info once a second while it is visible, and draws what changed since the answer before. Everything that
// comes from the node becomes text nodes, never markup.
(() => {
  const pollMS = 1000;
  const timeoutMS = 4000;
  const historyMax = 60; // samples a sparkline shows
  const smoothing = 3;   // samples a shown rate is the mean of

  const $ = (id) => document.getElementById(id);
  const whole = new Intl.NumberFormat("en");
  let previous = null;      // the answer before, for rates
  let definitions = [];     // of /v1/counters
  let definitionsFor = "";  // the counters that the look-up box was built for
  let skew = 0;             // node's clock - this clock, ms
  let asked = null;         // the URL of the last look-up
  let expiry = null;        // its next_expiry
  let polling = false;
  const series = new Map(); // name -> recent rates

  function el(tag, text, className) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }

  function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
    return (i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + " " + units[i];
  }

  function span(ms) {
    if (ms < 1000) return Math.max(0, Math.round(ms)) + " ms";
    const s = Math.floor(ms / 1000);
    const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
    const out = [];
    let rest = s;
    for (const [size, unit] of parts) {
      if (rest >= size || out.length) { out.push(Math.floor(rest / size) + unit); rest %= size; }
    }
    return out.slice(0, 2).filter((part, i) => i === 0 || !part.startsWith("0")).join(" ");
  }

  function instant(ms) { return ms === null || ms === undefined ? "–" : new Date(ms).toISOString().replace("T", " ").replace(/\.000Z$/, "Z"); }

  function rate(name, now, before, ms) {
    if (!series.has(name)) series.set(name, []);
    const all = series.get(name);
    if (before !== undefined && ms > 0) all.push(Math.max(0, now - before) * 1000 / ms);
    if (all.length > historyMax) all.shift();
    const recent = all.slice(-smoothing);
    return recent.length ? recent.reduce((a, b) => a + b, 0) / recent.length : 0;
  }

  function shown(r) { return r > 0 && r < 10 ? r.toFixed(1) : whole.format(Math.round(r)); }

  // replace puts children in place of what parent holds.
  function replace(parent, ...children) { parent.replaceChildren(...children); }

  function sparkline(name, label) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 " + (historyMax - 1) + " 20");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label + ", the last " + historyMax + " seconds");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    const all = series.get(name) || [];
    const top = Math.max(1, ...all);
    const start = historyMax - all.length;
    line.setAttribute("points", all.map((v, i) => (start + i) + "," + (19 - 18 * v / top).toFixed(2)).join(" "));
    svg.append(line);
    return svg;
  }

  function tile(id, title, number, detail, drawing) {
    const box = el("div", undefined, "tile");
    box.id = id;
    box.append(el("div", title, "quiet"), el("div", number, "number"));
    if (detail) box.append(el("div", detail, "quiet"));
    if (drawing) box.append(drawing);
    return box;
  }

  const sum = (list, field) => list.reduce((total, x) => total + x[field], 0);

  function drawTiles(info, ms) {
    const before = previous ? previous.streams : undefined;
    const rates = {};
    for (const field of ["accepted", "duplicates", "rejected"]) {
      rates[field] = rate(field, sum(info.streams, field), before && sum(before, field), ms);
    }
    replace($("tiles"),
      tile("tile-accepted", "Accepted", shown(rates.accepted) + " /s", whole.format(sum(info.streams, "accepted")) + " since the start", sparkline("accepted", "accepted events a second")),
      tile("tile-duplicates", "Duplicates", shown(rates.duplicates) + " /s", whole.format(sum(info.streams, "duplicates")) + " since the start", sparkline("duplicates", "duplicate events a second")),
      tile("tile-rejected", "Rejected", shown(rates.rejected) + " /s", whole.format(sum(info.streams, "rejected")) + " since the start", sparkline("rejected", "rejected events a second")),
      tile("tile-memory", "Memory", bytes(info.memory.used_bytes), "of " + bytes(info.memory.limit_bytes)),
      tile("tile-disk", "Disk", bytes(info.disk.used_bytes), bytes(info.disk.free_bytes) + " free" + (info.disk.full ? ": full, events are refused" : "")));
  }

  function terms(pairs) {
    const list = el("dl");
    for (const [name, value] of pairs) list.append(el("dt", name), el("dd", value));
    return list;
  }

  function drawCounters(info) {
    const cards = info.counters.map((c) => {
      const definition = definitions.find((d) => d.name === c.name);
      const card = el("article", undefined, "card");
      const head = el("div");
      const ready = c.state === "ready";
      head.append(el("h3", c.name), el("span", ready ? "ready" : c.state + " " + (c.progress * 100).toFixed(1) + " %", "pill " + (ready ? "good" : "warn")));
      const facts = [];
      if (definition) {
        facts.push(["key", definition.key.join(", ")], ["windows", definition.windows.join(", ")]);
        if (definition.where) facts.push(["where", definition.where]);
      }
      facts.push(["stream", c.stream], ["behind by", whole.format(c.lag) + " events"], ["newest event", instant(c.newest)]);
      if (c.late) facts.push(["too late", whole.format(c.late)]);
      for (const [reason, n] of Object.entries(c.skipped)) if (n) facts.push(["skipped: " + reason, whole.format(n)]);
      card.append(head, terms(facts));
      return card;
    });
    replace($("counters"), ...(cards.length ? cards : [el("p", "No counter is configured.", "quiet")]));
  }

  function cell(label, text, small) {
    const td = el("td");
    td.dataset.label = label;
    const box = el("span", text);
    if (small) box.append(el("small", small));
    td.append(box);
    return td;
  }

  const range = (tier) => tier.end > tier.first ? whole.format(tier.first) + " … " + whole.format(tier.end - 1) : "empty";

  const columns = ["Partition", "Events /s", "Stored", "Not yet on disk", "Ring", "Warm", "Counters behind"];

  function partitionRow(stream, p, info, ms) {
    const old = previous && previous.streams.find((s) => s.name === stream.name);
    const before = old && old.partitions[p.partition];
    const r = rate(stream.name + "/" + p.partition, p.appended, before && before.appended, ms);
    let behind = 0;
    for (const c of info.counters) {
      if (c.stream === stream.name) for (const own of c.partitions) if (own.partition === p.partition) behind = Math.max(behind, own.lag);
    }
    const row = el("tr");
    row.append(
      cell(columns[0], String(p.partition)),
      cell(columns[1], shown(r)),
      cell(columns[2], whole.format(p.durable - p.first), range({ first: p.first, end: p.durable })),
      cell(columns[3], whole.format(p.appended - p.durable)),
      cell(columns[4], bytes(p.tiers.ring.bytes), range(p.tiers.ring)),
      cell(columns[5], bytes(p.tiers.warm.bytes), range(p.tiers.warm)),
      cell(columns[6], whole.format(behind)));
    return row;
  }

  function drawStreams(info, ms) {
    replace($("streams"), ...info.streams.map((s) => {
      const box = el("div", undefined, "stream");
      box.append(el("h3", s.name), el("p", s.partitions.length + " partitions by " + s.segment + ", kept " + span(s.retention_ms), "quiet"));
      const scroll = el("div", undefined, "scroll");
      const table = el("table"), head = el("thead"), row = el("tr"), body = el("tbody");
      for (const name of columns) { const th = el("th", name); th.scope = "col"; row.append(th); }
      head.append(row);
      body.append(...s.partitions.map((p) => partitionRow(s, p, info, ms)));
      table.append(head, body);
      scroll.append(table);
      box.append(scroll);
      return box;
    }));
  }

  function banner(text) {
    $("banner").hidden = !text;
    if ($("banner").textContent !== text) $("banner").textContent = text;
  }

  function drawStatus(info) {
    const ready = info.status === "ready";
    $("status").textContent = info.status;
    $("status").className = "pill " + (ready ? "good" : "warn");
    $("about").textContent = info.version + ", up " + span(info.uptime_ms);
    banner(ready ? (info.disk.full ? "The disk is full: events are refused until there is room." : "")
      : "The node is " + info.status + ": events and look-ups are refused until it is ready.");
  }

  function unreachable() {
    $("status").textContent = "unreachable";
    $("status").className = "pill bad";
    banner("The node cannot be reached. The numbers below are old.");
    previous = null;
  }

  async function fetchJSON(url) {
    const reply = await fetch(url, { signal: AbortSignal.timeout(timeoutMS), cache: "no-store" });
    return { ok: reply.ok, body: await reply.json() };
  }

  async function refreshDefinitions(info) {
    const names = JSON.stringify(info.counters.map((c) => c.name));
    if (names === definitionsFor) return;
    const { ok, body } = await fetchJSON("/v1/counters");
    if (!ok) return;
    definitions = body.counters;
    definitionsFor = names;
    buildForm();
  }

  function buildForm() {
    $("ask").hidden = definitions.length === 0;
    $("lookup-none").hidden = definitions.length > 0;
    const chosen = $("counter").value;
    replace($("counter"), ...definitions.map((d) => { const o = el("option", d.name); o.value = d.name; return o; }));
    if (definitions.some((d) => d.name === chosen)) $("counter").value = chosen;
    buildFields();
  }

  function buildFields() {
    const definition = definitions.find((d) => d.name === $("counter").value);
    replace($("fields"), ...(definition ? definition.key : []).map((path, i) => {
      const label = el("label", path), input = el("input");
      label.htmlFor = input.id = "key-" + i;
      input.required = true;
      input.spellcheck = false;
      label.append(input);
      return label;
    }));
    asked = expiry = null;
    $("answer").hidden = $("refused").hidden = true;
  }

  async function lookUp() {
    const url = asked;
    if (!url) return;
    let reply;
    try { reply = await fetchJSON(url); } catch { return; } // the banner says that the node is away
    if (url !== asked) return; // another question was asked meanwhile
    $("answer").hidden = !reply.ok;
    $("refused").hidden = reply.ok;
    if (reply.ok) { drawAnswer(reply.body); return; }
    const e = reply.body.error;
    $("refused").textContent = e.message + (e.hint ? " (" + e.hint + ")" : "");
  }

  function drawAnswer(a) {
    replace($("windows"), ...Object.entries(a.windows).map(([name, w]) => {
      const row = el("tr");
      row.append(el("td", name), el("td", whole.format(w.count)), el("td", w.max === null ? "unknown" : whole.format(w.max)),
        el("td", w.exact ? "yes" : "no", w.exact ? "" : "bad"));
      return row;
    }));
    expiry = a.next_expiry;
    const notes = [];
    if (a.complete_since !== undefined) notes.push("Complete since " + instant(a.complete_since) + ".");
    if (a.behind) notes.push(whole.format(a.behind) + " events are stored but not counted yet.");
    $("notes").textContent = notes.join(" ");
    drawExpiry();
  }

  function drawExpiry() {
    if (!asked) return;
    if (expiry === null) { $("expiry").textContent = "Time alone will not change this answer."; return; }
    const left = expiry - (Date.now() + skew);
    $("expiry").textContent = left > 0 ? "The next event leaves a window in " + span(left) + "." : "An event has left a window.";
  }

  async function poll() {
    if (polling || document.hidden) return;
    polling = true;
    try {
      const { body: info } = await fetchJSON("/v1/info");
      skew = info.now - Date.now();
      const ms = previous ? info.now - previous.now : 0;
      await refreshDefinitions(info);
      drawStatus(info);
      drawTiles(info, ms);
      drawCounters(info);
      drawStreams(info, ms);
      previous = info;
    } catch (problem) {
      unreachable();
      if (!(problem instanceof TypeError || problem instanceof DOMException)) throw problem;
    } finally {
      polling = false;
    }
    if (asked && $("again").checked) await lookUp();
    drawExpiry();
  }

  $("counter").addEventListener("change", buildFields);
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const query = new URLSearchParams();
    for (const input of $("fields").querySelectorAll("input")) query.append("key", input.value);
    asked = "/v1/counters/" + encodeURIComponent($("counter").value) + "?" + query;
    lookUp();
  });
  // A page that nobody sees asks nothing; rates start afresh, because the gap is not a second.
  document.addEventListener("visibilitychange", () => { previous = null; poll(); });
  setInterval(poll, pollMS);
  poll();
})();
