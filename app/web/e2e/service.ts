/** Starts the service for the tests, unless CONVOKE_URL names one that runs already. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

const ROOT = join(import.meta.dirname, "../../..");

declare module "vitest" {
  interface ProvidedContext {
    url: string;
  }
}

export const PYTHON = existsSync(join(ROOT, ".venv/bin/python")) ? join(ROOT, ".venv/bin/python") : "python3";

function ready(service: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const read = (chunk: Buffer) => {
      said += chunk.toString();
      const found = /https?:\/\/[\w.:[\]]+/.exec(said);
      if (found) resolve(found[0]);
    };
    service.stdout!.on("data", read);
    service.once("exit", () => reject(new Error(`the service ended: ${said}`)));
  });
}

export interface Started {
  readonly url: string;
  readonly end: () => Promise<void>;
}

/** @param settings of this service, as `CONVOKE_…` variables of its environment. */
export async function start(settings: Record<string, string> = {}): Promise<Started> {
  // A line for each request would bury what the tests say.
  const env = { CONVOKE_LOG_LEVEL: "warning", ...process.env, ...settings };
  const service = spawn(PYTHON, ["-m", "app", "--port", "0", "--workers", "1"], { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] });
  return {
    url: `${await ready(service)}/`,
    end: async () => {
      const ended = new Promise((resolve) => service.once("exit", resolve));
      service.kill("SIGTERM");
      await ended;
    },
  };
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.CONVOKE_URL;
  if (given) {
    project.provide("url", given.replace(/\/?$/, "/"));
    return async () => undefined;
  }
  const { url, end } = await start();
  project.provide("url", url);
  return end;
}
