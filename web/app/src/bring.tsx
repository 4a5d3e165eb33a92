// What one brings along from another network, and takes to one: files of addresses, as Mastodon writes and reads them.
import { useState, type ChangeEvent } from 'react';
import { useClient, type OperationResult } from 'urql';
import { AccountsFileDocument, ImportAccountsDocument, type AccountsFileQuery, type AccountsKind } from './gql';
import { sentence, tell } from './ui';

const kinds: [AccountsKind, string][] = [
  ['FOLLOWS', 'Follows'],
  ['BLOCKS', 'Blocks'],
  ['MUTES', 'Mutes'],
  ['LISTS', 'Lists'],
];

/** How many lines are sent at a time. */
const linesAtOnce = 200;

const mostBytes = 10_000_000;

type Refused = { line: number; handle: string; why: string };

export function Bring() {
  const client = useClient();
  const [kind, setKind] = useState<AccountsKind>('FOLLOWS');
  const [isRunning, setRunning] = useState(false);
  const [state, setState] = useState<{ done: number; of: number; made: number; refused: Refused[] }>();

  const choose = async (event: ChangeEvent<HTMLInputElement>) => {
    const field = event.currentTarget;
    const file = field.files![0]!;
    if (file.size > mostBytes) return tell('The file is larger than 10 MB.', 'bad');
    const text = await file.text();
    field.value = '';
    setRunning(true);
    await bring(text.trimEnd().split('\n'));
    setRunning(false);
  };
  // One part after another; what a part has done already is done again without a change.
  const bring = async (lines: string[]) => {
    let [done, made, size] = [0, 0, linesAtOnce];
    const refused: Refused[] = [];
    const show = () => setState({ done, of: lines.length, made, refused });
    while (done < lines.length) {
      show();
      const { data, error } = await client.mutation(ImportAccountsDocument, { kind, file: lines.slice(done, done + size).join('\n') });
      const { reason, retryAfter } = (error?.graphQLErrors[0]?.extensions ?? {}) as { reason?: string; retryAfter?: number };
      if (reason === 'TOO_LONG' && size > 1) {
        size = Math.ceil(size / 2); // they name too many lists
      } else if (retryAfter) {
        await new Promise(go => setTimeout(go, retryAfter * 1000));
      } else if (error) {
        return tell(`${sentence(error)} ${done} of ${lines.length} lines are done.`, 'bad');
      } else {
        for (const { line, handle, changed, error } of data!.importAccounts!.outcomes) {
          if (changed) made++;
          if (error) refused.push({ line: done + line, handle, why: error.message });
        }
        done = Math.min(done + size, lines.length);
      }
    }
    show();
  };

  const take = async () => {
    let text = '';
    let after: string | null = null;
    do {
      const answer: OperationResult<AccountsFileQuery> = await client.query(AccountsFileDocument, { kind, after }, { requestPolicy: 'network-only' });
      const page = answer.data?.viewer?.accountsFile;
      if (!page) return tell(sentence(answer.error), 'bad');
      text += page.text;
      after = page.endCursor ?? null;
    } while (after);
    const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(new Blob([text], { type: 'text/csv' })), download: `${kind.toLowerCase()}.csv` });
    link.click();
    URL.revokeObjectURL(link.href);
  };

  return (
    <section className="card" aria-label="Bring your network">
      <h2>Bring your network</h2>
      <p className="quiet">CSV files as Mastodon exports them, or a handle a line. People are found by their handle here.</p>
      <label className="field">
        What it is of
        <select value={kind} onChange={event => setKind(event.target.value as AccountsKind)} disabled={isRunning}>
          {kinds.map(([one, label]) => (
            <option key={one} value={one}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        Import a file
        <input type="file" accept=".csv,.txt,text/csv,text/plain" onChange={choose} disabled={isRunning} />
      </label>
      {state && (
        <div role="status">
          <p>
            {state.done} of {state.of} lines, {state.made} of them have changed something.
          </p>
          <ul className="quiet">
            {state.refused.slice(0, 100).map(({ line, handle, why }) => (
              <li key={line}>
                Line {line}, {handle}: {why}
              </li>
            ))}
          </ul>
        </div>
      )}
      <button type="button" className="button" onClick={take}>
        Export
      </button>
    </section>
  );
}
