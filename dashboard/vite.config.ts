// How the dashboard is built: into dist/, files named by their content, no inline script. `npm run dashboard -- dev` serves it
// beside a running server (POSTERN_BASE_URL), where one signs in as usual.
import tailwindcss from "@tailwindcss/vite";
import { defineConfig } from "vite";

const { POSTERN_BASE_URL: target = "http://127.0.0.1:8080" } = process.env;
/** The server takes changes from its own pages only. */
const toServer = { target, changeOrigin: true, headers: { origin: target } };

/** Libraries that every page needs, in files of their own: they stay in a browser's cache over releases. */
function chunkOf(id: string): string | undefined {
  return /node_modules\/(?:react|react-dom|scheduler)\//.test(id) ? "react" : undefined;
}

export const config = defineConfig({
  root: import.meta.dirname,
  plugins: [tailwindcss()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    manifest: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: { output: { manualChunks: chunkOf } },
  },
  server: { proxy: { "/v1": toServer, "/dashboard/api": toServer } },
});

export { config as default };
