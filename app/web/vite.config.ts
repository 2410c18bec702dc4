import { copyFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { defineConfig, type Plugin } from "vite";

/** Puts Swagger UI beside the page, so that the service's /docs fetches nothing from another origin. */
function swagger(): Plugin {
  let out = "dist";
  return {
    name: "swagger",
    apply: "build",
    configResolved: (config) => {
      out = join(config.root, config.build.outDir);
    },
    closeBundle: () => {
      const from = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
      mkdirSync(join(out, "swagger"), { recursive: true });
      // The notices go with what they are of: its licence asks for NOTICE, and the bundle names the last one.
      for (const file of ["swagger-ui.css", "swagger-ui-bundle.js", "LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"]) {
        copyFileSync(join(from, file), join(out, "swagger", file));
      }
    },
  };
}

const service = process.env.CONVOKE_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  base: "./",
  plugins: [swagger()],
  build: {
    target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false },
    // Minifying leaves out the notices of the packages that the page is bundled with.
    license: { fileName: "licences.md" },
  },
  server: { proxy: { "/v1": service, "/version": service, "/readyz": service } },
});
