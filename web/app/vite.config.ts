import { defineConfig } from 'vite';

// Kith serves the page itself (web/page/app.html) and all built files from one folder whose name
// is a hash of them, so they name one another by relative addresses.
export default defineConfig({
  base: './',
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      input: 'src/main.tsx',
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js', assetFileNames: '[name][extname]' },
    },
  },
  worker: { format: 'es', rolldownOptions: { output: { entryFileNames: '[name]-[hash].js' } } },
  // `npm run dev` serves index.html beside a gateway on its usual address.
  server: { proxy: { '/graphql': { target: 'http://127.0.0.1:8080', ws: true }, '/faces': 'http://127.0.0.1:8080', '/app/demo-token': 'http://127.0.0.1:8080' } },
});
