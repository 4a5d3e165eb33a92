// A copy of edges made of `changes`, which digests prove: docs/how-to/changes.md. A digest is computed as Kith's databases compute it, with
// 64 bits.

const types = {
  following: 1n, blocking: 2n, follow_request: 3n, declined_follow_request: 4n,
  friend_request: 1n, accepted_request: 2n, declined_request: 3n, cancelled_request: 4n, removed_request: 5n,
  true: 1n, mention: 2n,
};

const mix = ({ from, to, item, type, at }) => {
  const a = (from ^ BigInt.asUintN(64, to << 21n) ^ BigInt.asUintN(64, item << 32n) ^ (item >> 32n) ^ at ^ 7640891576956012809n) % 4093082899n;
  const b = (to ^ BigInt.asUintN(64, from << 13n) ^ item ^ BigInt.asUintN(64, at << 7n) ^ (type << 50n)) % 3367900313n;
  return a * b;
};

function bucketOf(user) {
  let crc = -1;
  for (const digit of String(user)) {
    crc ^= digit.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc & 1023;
}

export function edgesCopy() {
  const buckets = Array.from({ length: 1024 }, () => new Map());

  function compare({ kind, bucket, after, up_to, users = "" }) {
    const differences = new Map();
    const add = (user, digest) => differences.set(user, (differences.get(user) ?? 0n) ^ digest);
    for (const [key, edge] of buckets[bucket]) {
      if (edge.type && key.startsWith(kind) && edge.from > BigInt(after) && edge.from <= BigInt(up_to)) add(String(edge.from), mix(edge));
    }
    for (const there of users.split(" ").filter(Boolean)) {
      const [user, digest] = there.split(":");
      add(user, BigInt("0x" + digest));
    }
    const differ = [...differences.keys()].filter((user) => differences.get(user));
    return differ.length ? differ : null;
  }

  return {
    get size() {
      return buckets.reduce((n, bucket) => n + [...bucket.values()].filter(({ type }) => type).length, 0);
    },
    take({ kind, type, subject, data }) {
      const what = (kind ?? type?.slice("kith.".length))?.toLowerCase();
      if (what === "digests") return compare(data);
      if (!["follows", "requests", "favorites"].includes(what)) return null;
      const [from, to, item = "0"] = subject.split("/");
      const [seconds, micros = ""] = (data.at ?? "").split("."); // a damaged row has none, and is no edge
      const edge = { from: BigInt(from), to: BigInt(to), item: BigInt(item), type: types[data.relation ?? data.favorited], at: BigInt(seconds + micros.padEnd(6, "0")) };
      // One that has ended stays, with its time: the log of a shard that its user has left may be behind, and tell what was before.
      const bucket = buckets[bucketOf(from)];
      if (!edge.at || !(edge.at < bucket.get(what + subject)?.at)) bucket.set(what + subject, edge);
      return null;
    },
  };
}
