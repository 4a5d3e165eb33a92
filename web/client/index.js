export * from "./cache.js";
export * from "./copy.js";
export * from "./optimistic.js";
export * from "./schema.js";
export * from "./session.js";
export * from "./subscriptions.js";
