import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["e2e/**/*.bench.ts"],
    globalSetup: "e2e/service.ts",
    testTimeout: 600_000,
    hookTimeout: 60_000,
    disableConsoleIntercept: true,
  },
});
