// What all pages use: messages, placeholders, dialogs.
import { Component, useEffect, useId, useLayoutEffect, useRef, useState, useSyncExternalStore, type FormEvent, type ReactNode } from 'react';
import type { CombinedError } from 'urql';
import { Link } from './router';

/** Icons are drawn here, a stroke each, in the colour of the text. */
const icons = {
  home: 'M3 11.5 12 4l9 7.5M5.5 9.5V20h13V9.5M10 20v-5.5h4V20',
  people: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20c.4-3.8 2.9-6 6.5-6s6.1 2.2 6.5 6M16 4.3a3.5 3.5 0 0 1 0 6.4M18.5 14.5c1.8.9 2.8 2.7 3 5.5',
  picture: 'M6 8a2.2 2.2 0 1 0 0-4.4A2.2 2.2 0 0 0 6 8ZM18 10.5a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4ZM9.5 20a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4ZM8 6.5l8 1.5M7 8l2 7.5M16.5 10l-5.5 6',
  inbox: 'M4 5h16v14H4ZM4 13h4.5l1 2.5h5l1-2.5H20',
  mark: 'm12 3.8 2.5 5.2 5.7.8-4.1 4 1 5.7-5.1-2.7-5.1 2.7 1-5.7-4.1-4 5.7-.8Z',
  list: 'M9 6h11M9 12h11M9 18h11M4 6h.5M4 12h.5M4 18h.5',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.5 15.5 20.5 20.5',
  bell: 'M6 17v-6a6 6 0 0 1 12 0v6l1.5 2h-15ZM10 21.5h4M12 5V3',
  heart: 'M12 20S4 15 4 9.3C4 6.8 5.9 5 8.1 5c1.7 0 3.1 1 3.9 2.5C12.8 6 14.2 5 15.9 5 18.1 5 20 6.8 20 9.3 20 15 12 20 12 20Z',
  close: 'M6 6l12 12M18 6 6 18',
  at: 'M15.5 12a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0v1.5a2.5 2.5 0 0 0 5 0V12a8.5 8.5 0 1 0-3.5 6.9',
  comment: 'M4 5h16v11.5h-9L6.5 20v-3.5H4Z',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  leave: 'M14 4H5v16h9M10 12h11M17.5 8.5 21 12l-3.5 3.5',
  more: 'M5.5 12h1M11.5 12h1M17.5 12h1',
  trash: 'M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7',
} as const;

export type IconName = keyof typeof icons;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={icons[name]} />
    </svg>
  );
}

/** The heading of a page. It takes the focus when the page changes, so that a screen reader begins there, but from nobody who writes. */
export function PageTitle({ title, children }: { title: string; children?: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${title} · Kith`;
  }, [title]);
  useEffect(() => {
    const writes = document.activeElement?.matches('input, textarea, select');
    if (pageHasChanged && !writes) heading.current?.focus({ preventScroll: true });
    pageHasChanged = true;
  }, []);
  return (
    <header className="page-title">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </header>
  );
}

// On the first page, the focus stays where the browser has put it.
let pageHasChanged = false;

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} />
      <p className="empty-title">{title}</p>
      {children && <div className="quiet">{children}</div>}
    </div>
  );
}

export function Failure({ text, retry }: { text: string; retry?: () => void }) {
  return (
    <div className="failure" role="alert">
      <p>{text}</p>
      {retry && (
        <button type="button" className="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shows a failure if a page breaks, such as a page whose files a new version has replaced. */
export class Guard extends Component<{ path: string; children: ReactNode }, { broken: boolean }> {
  state = { broken: false };

  static getDerivedStateFromError = () => ({ broken: true });

  componentDidUpdate(before: { path: string }) {
    if (before.path !== this.props.path && this.state.broken) this.setState({ broken: false });
  }

  render() {
    return this.state.broken ? <Failure text="This page couldn’t be shown." retry={() => location.reload()} /> : this.props.children;
  }
}

/** Grey rows in place of rows of people that are being read, of the same height: nothing moves when these come. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className="skeletons" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} className="row skeleton" aria-hidden="true">
          <span className="face" />
          <span className="lines">
            <span />
            <span />
          </span>
        </div>
      ))}
    </div>
  );
}

// Messages at the edge of the page, which a screen reader reads out.
type Note = { id: number; text: string; kind: 'good' | 'bad'; undo?: () => void; to?: string };
let notes: Note[] = [];
let lastNote = 0;
const noteListeners = new Set<() => void>();

function setNotes(next: Note[]) {
  notes = next;
  for (const listener of noteListeners) listener();
}

// A gateway with --only-trusted=on answers the documents of its own app alone: one that has been updated, none of a page that was open before.
const newVersion = 'There is a new version of this page.';
const isOfNewVersion = (error: CombinedError) => error.graphQLErrors[0]?.extensions.reason === 'DOCUMENTS_ONLY';
let isOld = false;

/** Notices errors by which the page is too old for the gateway. That is told once, and until the page is loaded again. */
export function notice(error: CombinedError) {
  if (isOld || !isOfNewVersion(error)) return;
  isOld = true;
  setNotes([...notes]);
}

const drop = (id: number) => setNotes(notes.filter(note => note.id !== id));

/** Shows a message, and what takes back what it tells, or the page that has more of it: of each page the last one. */
export function tell(text: string, kind: Note['kind'] = 'good', undo?: () => void, to?: string) {
  if (text === newVersion) return; // which is shown already, and stays
  const id = ++lastNote;
  setNotes([...notes.filter(note => !to || note.to !== to).slice(-2), { id, text, kind, undo, to }]);
  setTimeout(() => drop(id), undo || to ? 12_000 : 6_000);
}

/** Shows the outcome of a change: a failure, or the sentence for success, if there is one. Returns whether it succeeded. */
export async function report(change: Promise<{ error?: CombinedError }>, good?: string) {
  const { error } = await change;
  if (error) tell(sentence(error), 'bad');
  else if (good) tell(good);
  return !error;
}

/** What a suspended user reads. */
export function suspended(reason: string, until: string | null | undefined): string {
  return `Your account is suspended${until ? ` until ${moment(until)}` : ''}. Reason: ${reason}.`;
}

/** A sentence for people about what went wrong. */
export function sentence(error: CombinedError | undefined): string {
  if (!error) return '';
  if (isOfNewVersion(error)) return newVersion;
  const first = error.graphQLErrors[0];
  if (first?.extensions.reason === 'SUSPENDED') {
    const { until } = first.extensions as { until?: string | null };
    return suspended(first.message.slice(first.message.indexOf(': ') + 2), until);
  }
  if (first) return first.message.charAt(0).toUpperCase() + first.message.slice(1) + '.';
  return 'The server can’t be reached. Check your connection and try again.';
}

export function Notes() {
  const shown = useSyncExternalStore(
    listener => {
      noteListeners.add(listener);
      return () => noteListeners.delete(listener);
    },
    () => notes,
  );
  return (
    <div className="notes" role="status" aria-live="polite">
      {isOld && (
        <p className="note bad">
          {newVersion}
          <button type="button" className="undo" onClick={() => location.reload()}>
            Reload
          </button>
        </p>
      )}
      {shown.map(note => (
        <p key={note.id} className={`note ${note.kind}`}>
          {note.text}
          {note.undo && (
            <button
              type="button"
              className="undo"
              onClick={() => {
                drop(note.id);
                note.undo!();
              }}
            >
              Undo
            </button>
          )}
          {note.to && (
            <Link to={note.to} className="undo" onClick={() => drop(note.id)}>
              Show
            </Link>
          )}
        </p>
      ))}
    </div>
  );
}

/** A dialog of the browser's own, which keeps the focus inside and ends with Escape. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close(); // gives the focus back, which the browser does not do for a dialog that is removed while open
  }, []);
  // React's strict mode opens a new dialog twice: the event of its first end comes when it is open again.
  return (
    <dialog ref={dialog} onClose={event => event.currentTarget.open || close()} aria-label={title} className="dialog">
      <header>
        <h2>{title}</h2>
        <button type="button" className="button plain" onClick={close} aria-label="Close">
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** A button that opens a list of buttons and links. Choosing one closes it, and the focus goes back. It lies above all that the page cuts off. */
export function Menu({ label, children }: { label: string; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (!open) return;
    const { style, offsetWidth, offsetHeight } = list.current!;
    const at = button.current!.getBoundingClientRect();
    const below = at.bottom + 4 + offsetHeight < innerHeight || at.top < offsetHeight;
    style.left = `${scrollX + (at.left + offsetWidth < innerWidth - 8 ? at.left : at.right - offsetWidth)}px`;
    style.top = `${scrollY + (below ? at.bottom + 4 : at.top - 4 - offsetHeight)}px`;
  }, [open]);
  return (
    <>
      <button ref={button} type="button" className="button menu-button" aria-label={label} aria-expanded={open} popoverTarget={id}>
        <Icon name="more" />
      </button>
      <div ref={list} id={id} popover="auto" className="menu" onBeforeToggle={event => event.newState === 'open' && setOpen(true)} onToggle={event => setOpen(event.newState === 'open')} onClick={() => list.current?.hidePopover()}>
        {open && children}
      </div>
    </>
  );
}

/** How many characters a text has, as Kith counts them: to browsers, an emoji is two or more. */
export const lengthOf = (text: string) => [...text].length;

/** A field that takes so many characters. Until it has no more, its form is not sent. */
export const atMost = (characters: number) => ({
  onInput: ({ currentTarget: field }: FormEvent<HTMLInputElement | HTMLTextAreaElement>) => {
    const more = lengthOf(field.value) - characters;
    field.setCustomValidity(more > 0 ? `${more} ${more === 1 ? 'character' : 'characters'} too many.` : '');
  },
});

type SelectProps = { name: string; text: string; options: readonly (readonly [string, string])[]; value?: string };

/** A labelled choice of one: pairs of a value and its text. */
export function Select({ name, text, options, value }: SelectProps) {
  return (
    <label className="field">
      {text}
      <select name={name} defaultValue={value}>
        {options.map(([one, label]) => (
          <option key={one} value={one}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Calls see when the element gets close to the visible part of the page. */
export function Sentinel({ see }: { see: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  const latest = useRef(see);
  latest.current = see;
  useEffect(() => {
    const watch = new IntersectionObserver(entries => entries.some(entry => entry.isIntersecting) && latest.current(), { rootMargin: '600px' });
    watch.observe(element.current!);
    return () => watch.disconnect();
  }, []);
  return <div ref={element} aria-hidden="true" className="sentinel" />;
}

/** The last value that stayed the same for a moment. */
export function useSettled<T>(value: T, milliseconds = 200): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
export const short = (n: number) => compact.format(n);

/** A number, short, with the exact one beside the pointer. */
export const Count = ({ of }: { of: number }) => <span title={of < 1_000 ? undefined : of.toLocaleString('en')}>{short(of)}</span>;

export const day = (at: string) => new Date(at).toLocaleDateString('en', { day: 'numeric', month: 'long', year: 'numeric' });
const moment = (at: string) => new Date(at).toLocaleString('en', { dateStyle: 'long', timeStyle: 'short' });

const ages: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** How long ago something was. What has happened is not in the future, even if the clock here is slow. */
export function Age({ at }: { at: string }) {
  const seconds = Math.min(0, Date.parse(at) - Date.now()) / 1000;
  const [unit, length] = ages.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
  const text = unit === 'second' ? 'just now' : relative.format(Math.trunc(seconds / length), unit);
  return <time dateTime={at}>{text}</time>;
}

export const present = <T,>(list: readonly (T | null | undefined)[] | null | undefined): T[] => (list ?? []).filter((one): one is T => one != null);
