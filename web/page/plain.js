// The query page Kith serves where GraphiQL has not been built: one request at a time,
// the answer as JSON. In a file of its own because the Content-Security-Policy allows
// no inline script.
const $ = id => document.getElementById(id);
const form = $('form');

const link = new URLSearchParams(location.search); // ?query=…&variables=… fills the page in
for (const name of ['query', 'variables']) {
  if (link.has(name)) $(name).value = link.get(name);
}

// With a demo graph there are examples, and whoever looks may be any of its users.
for (const text of JSON.parse(form.dataset.examples)) {
  $('example').add(new Option(/^(?:query|mutation|subscription) (\w+)/m.exec(text)[1], text));
}
$('example')?.addEventListener('change', event => ($('query').value = event.target.value));

// identify signs in as the demo user who is chosen, unless the headers say who is asking.
async function identify(headers) {
  const user = $('user')?.value;
  if (!user || headers.has('authorization')) return;
  const answer = await fetch(`/demo/token?user=${user}`, { method: 'POST' });
  if (!answer.ok) throw new Error(await answer.text());
  headers.set('authorization', `Bearer ${(await answer.json()).token}`);
}

form.addEventListener('submit', event => {
  event.preventDefault();
  run();
});
form.addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
});

async function run() {
  $('run').disabled = true;
  $('status').value = 'running …';
  const start = performance.now();
  try {
    const headers = new Headers(json('headers'));
    await identify(headers);
    headers.set('content-type', 'application/json');
    headers.set('accept', 'application/graphql-response+json, application/json;q=0.9');
    const response = await fetch(form.dataset.endpoint, {
      method: 'POST',
      headers,
      body: JSON.stringify({ query: $('query').value, variables: json('variables') }),
    });
    const text = await response.text();
    show(pretty(text), !response.ok);
    $('status').value = `HTTP ${response.status}, ${Math.round(performance.now() - start)} ms`;
  } catch (err) {
    show(err.message, true);
    $('status').value = '';
  } finally {
    $('run').disabled = false;
  }
}

// json returns the object written in a field; an empty field is an empty object.
function json(id) {
  const text = $(id).value.trim();
  if (!text) return {};
  let value;
  try {
    value = JSON.parse(text);
  } catch (err) {
    throw new Error(`${id} are not valid JSON: ${err.message}`);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new Error(`${id} must be a JSON object`);
  }
  return value;
}

// pretty indents JSON and leaves anything else (a proxy's error page) as it is.
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function show(text, wrong) {
  $('result').textContent = text;
  $('result').classList.toggle('wrong', wrong);
}
