const { relay } = require("@kith/client");

module.exports = { ...relay, src: "./src", schema: "./schema.graphql", language: "typescript" };
