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

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.CONVOKE_URL;
  if (given) {
    project.provide("url", given.replace(/\/?$/, "/"));
    return async () => undefined;
  }
  const service = spawn(PYTHON, ["-m", "app", "--port", "0", "--workers", "1"], { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  project.provide("url", `${await ready(service)}/`);
  return async () => {
    const ended = new Promise((resolve) => service.once("exit", resolve));
    service.kill("SIGTERM");
    await ended;
  };
}
