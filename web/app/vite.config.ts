import { defineConfig } from 'vite';

// Kith serves the page itself (web/page/app.html) and all built files from one folder whose name
// is a hash of them, so they name one another by relative addresses.
export default defineConfig(({ command }) => ({
  base: command === 'serve' ? '/app/' : './',
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
  // `npm run dev` shows the app at /app/ of its own port, beside a gateway with --demo on its usual address.
  server: { fs: { allow: ['..'] }, proxy: { '^/(graphql|faces|demo/token)': { target: process.env.KITH ?? 'http://127.0.0.1:8080', ws: true, changeOrigin: true, rewriteWsOrigin: true } } },
}));
