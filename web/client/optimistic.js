// What graphcache shows before Kith has answered: the answer that a change will most likely have. If Kith refuses, graphcache takes all of it back.

// optimistic adds to options of graphcache the expected answers, and what changes do to lists of the viewer, whose id is `viewerId`.
// Without it, it finds the viewer in the cache as soon as a page has asked for `viewer { id user { id } }`.
export function optimistic({ viewerId, ...options }) {
  const viewer = (cache) => {
    const id = viewerId ?? viewerIn(cache);
    return id ? { __typename: "Viewer", id: `viewer_${id}`, user: user(id) } : null;
  };
  const becomes = (change) => ({ userId }, cache) => changed(cache, viewer(cache), userId, change);
  // A change of a request, with what it is of one kind alone.
  const answers = (change, ofFriends, ofFollows) => ({ kind, userId }, cache) =>
    changed(cache, viewer(cache), userId, { ...change, ...(kind === "FRIEND" ? ofFriends : ofFollows) }, kind);
  // A change of many users, or of several lists.
  const anew = (name) => (answer, _, cache, info) => {
    if (answer[name] && !info?.optimistic) for (const list of lists) forget(cache, viewer(cache)?.user, list);
  };
  return {
    ...options,
    keys: { ...options.keys, FollowEdge: ({ id }) => id ?? null }, // edges that are added here have one
    optimistic: {
      follow({ userId }, cache) {
        if (cache.resolve(user(userId), "locked")) return changed(cache, viewer(cache), userId, { followRequested: true });
        const payload = changed(cache, viewer(cache), userId, { following: true });
        return payload && { ...payload, followingEdge: { __typename: "FollowEdge", cursor: "", followedAt: new Date().toISOString(), node: payload.user } };
      },
      unfollow: becomes({ following: false, followRequested: false }),
      removeFollower: becomes({ followedBy: false }),
      removeFriend: becomes({ following: false, followedBy: false }),
      block: becomes({ following: false, followedBy: false, blocking: true, special: null, remark: null }),
      unblock: becomes({ blocking: false }),
      mute: ({ userId, scope = "EVERYTHING", until }, cache) => changed(cache, viewer(cache), userId, { muted: scope, mutedUntil: until ?? null }),
      unmute: becomes({ muted: null, mutedUntil: null }),
      setFollowMark: ({ userId, ...mark }, cache) => changed(cache, viewer(cache), userId, mark),
      dismissSuggestion: () => ({ __typename: "RelationshipPayload", changed: true }),
      acceptRequest: answers({ followedBy: true, received: "ACCEPTED" }, { following: true }, { followRequestedBy: false }),
      declineRequest: answers({ received: "DECLINED" }, {}, { followRequestedBy: false, received: "ENDED" }),
      withdrawRequest: answers({ sent: "WITHDRAWN" }, {}, { followRequested: false, sent: "ENDED" }),
      favorite: ({ postId }, cache) => favorited(cache, viewer(cache), postId, true),
      unfavorite: ({ postId }, cache) => favorited(cache, viewer(cache), postId, false),
    },
    updates: {
      ...options.updates,
      Mutation: {
        ...options.updates?.Mutation,
        follow({ follow }, _, cache, info) {
          if (!follow) return;
          if (!info?.optimistic) forget(cache, viewer(cache)?.user, "friends"); // whoever is followed back is one
          if (follow.followingEdge === undefined) forget(cache, viewer(cache)?.user, "followings");
          else first(cache, viewer(cache), "followings", follow.followingEdge);
        },
        unfollow: ({ unfollow }, { userId }, cache) => unfollow && without(cache, viewer(cache), userId, "followings", "friends"),
        removeFollower: ({ removeFollower }, { userId }, cache) => removeFollower && without(cache, viewer(cache), userId, "followers", "friends"),
        block: ({ block }, { userId }, cache) => block && without(cache, viewer(cache), userId, ...lists),
        removeFriend: ({ removeFriend }, { userId }, cache) => removeFriend && without(cache, viewer(cache), userId, ...lists),
        ...Object.fromEntries(["acceptRequest", "acceptRequests", "followList", "followMany"].map((name) => [name, anew(name)])),
        dismissSuggestion: ({ dismissSuggestion }, { userId }, cache) => dismissSuggestion && without(cache, viewer(cache), userId, "followSuggestions"),
        undismissSuggestion: (_, __, cache) => forget(cache, viewer(cache)?.user, "followSuggestions"), // Kith alone knows the place
      },
      Subscription: {
        ...options.updates?.Subscription,
        followerAdded: ({ followerAdded }, _, cache) => first(cache, viewer(cache), "followers", followerAdded?.edge),
      },
    },
  };
}

const lists = ["followings", "followers", "friends"];

const user = (id) => ({ __typename: "User", id: String(id) });

// viewerIn is the id of the viewer, or null if no page has asked for it.
function viewerIn(cache) {
  const key = cache.resolve("Query", "viewer");
  return key && cache.resolve(cache.resolve(key, "user"), "id");
}

// plus is a number of an object, raised by an amount. It is empty if the number is not known, or not shown.
function plus(cache, entity, field, by) {
  const value = cache.resolve(entity, field);
  return typeof value === "number" ? { [field]: Math.max(0, value + by) } : {};
}

// changed is the answer of a change of the relationship with a user, with the counts of both.
function changed(cache, own, userId, { sent, received, ...change }, kind) {
  if (!own) return null;
  const key = { __typename: "Relationship", id: `rel_${own.user.id}_${userId}` };
  const was = { following: cache.resolve(key, "following"), followedBy: cache.resolve(key, "followedBy") };
  const status = cache.resolve(key, "status");
  was.following ??= status === "FOLLOWING" || status === "MUTUAL";
  was.followedBy ??= status === "FOLLOWED_BY" || status === "MUTUAL";
  const { following, followedBy } = { ...was, ...change };
  const [out, back] = [following - was.following, followedBy - was.followedBy];
  const friends = (following && followedBy) - (was.following && was.followedBy);
  const counted = (one, followings, followers) => ({
    ...one,
    ...plus(cache, one, "followingCount", followings),
    ...plus(cache, one, "followerCount", followers),
    ...plus(cache, one, "friendCount", friends),
  });
  const request = (from, to, state) => state && { __typename: "Request", id: `${kind === "FRIEND" ? "req" : "wait"}_${from}_${to}`, state };
  const [sentRequest, receivedRequest] = [request(own.user.id, userId, sent), request(userId, own.user.id, received)];
  const relationship = {
    ...key,
    ...change,
    following,
    followedBy,
    status: following ? (followedBy ? "MUTUAL" : "FOLLOWING") : followedBy ? "FOLLOWED_BY" : "NONE",
    ...(kind === "FRIEND" && { sentRequest, receivedRequest }),
  };
  const other = { ...counted(user(userId), back, out), viewerRelationship: relationship };
  const asked = sentRequest ?? receivedRequest ?? null;
  return { __typename: "RelationshipPayload", changed: true, viewer: { ...own, user: counted(own.user, out, back) }, user: other, relationship, request: asked };
}

function favorited(cache, own, postId, viewerHasFavorited) {
  const post = { __typename: "Post", id: String(postId) };
  const by = viewerHasFavorited - (cache.resolve(post, "viewerHasFavorited") ?? !viewerHasFavorited);
  return own && {
    __typename: "FavoritePayload",
    changed: true,
    viewer: { ...own, user: { ...own.user, ...plus(cache, own.user, "favoritesGivenCount", by) } },
    post: { ...post, viewerHasFavorited, ...plus(cache, post, "favoritesReceivedCount", by) },
  };
}

// pages calls see with each page of a list of the viewer that is in the cache: its key, the name and the keys of its edges, or of its nodes, and
// its arguments.
function pages(cache, own, list, see) {
  const of = own?.user;
  for (const { fieldName, fieldKey, arguments: args } of of ? cache.inspectFields(of) : []) {
    const page = fieldName === list && cache.resolve(of, fieldKey);
    for (const items of page ? ["edges", "nodes"] : []) {
      const keys = cache.resolve(page, items);
      if (keys) see(page, items, keys, args ?? {});
    }
  }
}

const isOf = (cache, userId) => (key) => !!key && (key === `User:${userId}` || cache.resolve(key, "node") === `User:${userId}`);

function without(cache, own, userId, ...lists) {
  for (const list of lists) pages(cache, own, list, (page, items, keys) => cache.link(page, items, keys.filter((key) => !isOf(cache, userId)(key))));
}

// first puts an edge at the head of a list, unless it has an order or a filter of its own. An edge that does not say of whom it is does not do.
function first(cache, own, list, edge) {
  if (!edge) return;
  if (!edge.node?.id) return forget(cache, own?.user, list);
  const added = { __typename: "FollowEdge", ...edge, id: `${list}_${edge.node.id}` };
  cache.writeFragment(edgeFragment(Object.keys(edge)), added);
  pages(cache, own, list, (page, items, keys, { after, filter, orderBy }) => {
    const key = items === "nodes" ? `User:${edge.node.id}` : `FollowEdge:${added.id}`;
    if (!after && !filter && !orderBy && !keys.some(isOf(cache, edge.node.id))) cache.link(page, items, [key, ...keys]);
  });
}

// forget lets the cache ask for a list again.
function forget(cache, entity, list) {
  for (const { fieldName, arguments: args } of entity ? cache.inspectFields(entity) : []) {
    if (fieldName === list) cache.invalidate(entity, fieldName, args);
  }
}

// edgeFragment is `fragment Edge on FollowEdge { cursor node { id } … }`, of the fields that an edge has.
function edgeFragment(names) {
  const name = (value) => ({ kind: "Name", value });
  const set = (fields) => ({ kind: "SelectionSet", selections: fields.map((field) => ({ kind: "Field", name: name(field), selectionSet: field === "node" ? set(["id"]) : undefined })) });
  const edge = { kind: "FragmentDefinition", name: name("Edge"), typeCondition: { kind: "NamedType", name: name("FollowEdge") }, selectionSet: set(names) };
  return { kind: "Document", definitions: [edge] };
}
