declare module 'graphology-layout-forceatlas2/iterate.js' {
  const iterate: (settings: object, nodes: Float32Array, edges: Float32Array) => void;
  export default iterate;
}

declare module 'graphology-layout-forceatlas2/defaults.js' {
  const defaults: object;
  export default defaults;
}
