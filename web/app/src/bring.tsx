// What one brings along from another network, and takes to one: files of addresses, as Mastodon writes and reads them.
import { useEffect, useState, type ChangeEvent } from 'react';
import { useClient, useQuery, type OperationResult } from 'urql';
import { AccountsFileDocument, AccountsImportsDocument, ImportAccountsDocument, RemoveAccountsImportDocument, type AccountsFileQuery, type AccountsKind } from './gql';
import { report, sentence, tell } from './ui';

const kinds: [AccountsKind, string][] = [
  ['FOLLOWS', 'Follows'],
  ['BLOCKS', 'Blocks'],
  ['MUTES', 'Mutes'],
  ['LISTS', 'Lists'],
];

const mostBytes = 192 * 1024;

export function Bring() {
  const client = useClient();
  const [kind, setKind] = useState<AccountsKind>('FOLLOWS');
  const [isSending, setSending] = useState(false);
  const [{ data }, ask] = useQuery({ query: AccountsImportsDocument, requestPolicy: 'cache-and-network' });
  const imports = data?.viewer?.accountsImports ?? [];
  const goesOn = imports.some(one => one.continuesAt);
  useEffect(() => {
    if (!goesOn) return;
    const timer = setInterval(() => ask({ requestPolicy: 'network-only' }), 2_000);
    return () => clearInterval(timer);
  }, [goesOn, ask]);

  const choose = async (event: ChangeEvent<HTMLInputElement>) => {
    const field = event.currentTarget;
    const file = field.files![0];
    field.value = ''; // the same file, or none, can be chosen next
    if (!file) return;
    if (file.size > mostBytes) return tell('The file is larger than 192 KiB: bring it in parts.', 'bad');
    const text = await file.text();
    setSending(true);
    await report(client.mutation(ImportAccountsDocument, { kind, file: text }).toPromise());
    setSending(false);
    ask({ requestPolicy: 'network-only' });
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
        <select value={kind} onChange={event => setKind(event.target.value as AccountsKind)} disabled={isSending}>
          {kinds.map(([one, label]) => (
            <option key={one} value={one}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        Import a file
        <input type="file" accept=".csv,.txt,text/csv,text/plain" onChange={choose} disabled={isSending} />
      </label>
      <div role="status">
        {imports.map(one => (
          <div key={one.id}>
            <p>
              {kinds.find(([kind]) => kind === one.kind)?.[1]}: {one.doneCount} of {one.lineCount} lines, {one.changedCount} of them have changed something
              {one.refusedCount > 0 && `, ${one.refusedCount} were refused`}.{' '}
              <button type="button" className="button" onClick={() => report(client.mutation(RemoveAccountsImportDocument, { id: one.id }).toPromise())}>
                {one.continuesAt ? 'Stop' : 'Forget'}
              </button>
            </p>
            <ul className="quiet">
              {one.refused.map(({ line, handle, error }) => (
                <li key={line}>
                  Line {line}, {handle}: {error.message}
                </li>
              ))}
            </ul>
          </div>
        ))}
      </div>
      <button type="button" className="button" onClick={take}>
        Export
      </button>
    </section>
  );
}
