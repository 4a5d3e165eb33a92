// Runs the page against Kith without a browser, and prints what it shows: node build/main.js URL HANDLE PASSWORD
// HANDLE-TO-FOLLOW. KITH_TOKEN is a token of an earlier visit. It ends with its input.
import { createSession, login, renewToken } from "@kith/client";
import { Profiler, Suspense, type ReactNode } from "react";
import { fetchQuery, RelayEnvironmentProvider } from "react-relay";
import { create } from "react-test-renderer";
import type { PageFollowersQuery } from "./__generated__/PageFollowersQuery.graphql";
import { createEnvironment } from "./environment";
import { Follow } from "./Changes";
import { followers as followersQuery, Page } from "./Page";

const [url, handle, password, other] = process.argv.slice(2);
if (!other) {
  console.error("arguments are missing: node build/main.js URL HANDLE PASSWORD HANDLE-TO-FOLLOW");
  process.exit(2);
}
const say = (what: string, more = {}) => console.log(JSON.stringify({ what, ...more }));
const signIn = () => login(url, handle, password);
const extend = (token: string) => renewToken(url, token);

async function main() {
  globalThis.WebSocket ??= (await import("ws")).WebSocket as never; // browsers and Node.js 22 have one
  const session = createSession({ token: process.env.KITH_TOKEN ?? (await signIn()), signIn, extend });
  const refetch = () => fetchQuery<PageFollowersQuery>(environment, followersQuery, {}).toPromise();
  const environment = createEnvironment(url, session, refetch);

  // render calls back whenever something has changed.
  const render = (what: ReactNode, look: () => void) =>
    create(
      <RelayEnvironmentProvider environment={environment}>
        <Profiler id="page" onRender={() => queueMicrotask(look)}>
          <Suspense>{what}</Suspense>
        </Profiler>
      </RelayEnvironmentProvider>,
    );
  const page = render(<Page handle={other} />, look);
  let shown = "";
  let followers: string | undefined;
  let step = 0;

  function look() {
    const { root } = page;
    if (root.findAllByType("h1").length === 0) return;
    const texts = (type: string, within = root) => within.findAllByType(type as never).map((found) => found.children.join(""));
    const list = texts("li", root.findByType("ol"));
    const state = { handles: list, followings: Number(texts("h1")[0]), followers: Number(texts("strong")[0]), status: texts("button").at(-1) };
    if (JSON.stringify(state) !== shown) say("shown", state);
    shown = JSON.stringify(state);

    const known = texts("li", root.findByType("ul"));
    const newest = known[0] ?? "";
    if (newest !== (followers ?? newest)) say("follower", { handle: newest, followers: Number(texts("h2")[0]), handles: known });
    followers = newest;

    const [more] = root.findAllByProps({ name: "more" });
    const follow = root.findByProps({ name: "follow" });
    if (more) {
      if (!more.props.disabled) more.props.onClick();
    } else if (step === 0) {
      step = 1;
      follow.props.onClick();
    } else if (step === 1 && !follow.props.disabled && state.status === "FOLLOWING") {
      step = 2;
      say("followed");
      followMyself();
    } else if (step === 3 && list[0] !== handle) {
      step = 4;
      follow.props.onClick(); // which unfollows
    } else if (step === 4 && !follow.props.disabled && state.status === "NONE") {
      step = 5;
      say("unfollowed");
    }
    if (step >= 5) dismissAndUndo();
  }

  // The first suggestion is dismissed, and that is undone.
  let suggested = "";
  function dismissAndUndo() {
    const list = page.root.findAllByType("dt");
    const handles = list.map((found) => found.children.join(""));
    if (handles.join() !== suggested) say("suggested", { handles });
    suggested = handles.join();
    const [undo] = page.root.findAllByProps({ name: "undo" });
    if (step === 5) {
      step = 6;
      list[0].props.onClick();
    } else if (step === 6 && undo && !undo.props.disabled) {
      step = 7;
      say("dismissed");
      undo.props.onClick();
    } else if (step === 7 && !undo) {
      step = 8;
      say("undone");
    }
  }

  // Nobody can follow oneself: the follow is shown, refused, and taken back.
  function followMyself() {
    const { viewer } = page.root.findByType(Follow).props;
    const me = { id: viewer.id, handle, name: "", followerCount: 0, viewerRelationship: { id: "", status: "NONE" as const } };
    const button = render(<Follow viewer={viewer} user={me} />, () => {
      const { root } = button;
      if (!clicked) root.findByType("button").props.onClick();
      clicked = true;
      for (const problem of root.findAllByType("em")) {
        say("refused", { code: problem.children[0] });
        step = Math.max(step, 3);
        shown = "";
        look();
      }
    });
    let clicked = false;
  }
  process.stdin.on("end", () => process.exit()).resume();
}
void main();
