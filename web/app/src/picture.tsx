export default function Picture(_: { centre?: string }) { return null; }
