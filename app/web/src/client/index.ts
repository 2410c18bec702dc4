export * from "./client";
export * from "./errors";
export { stages } from "./response";
export * from "./tensor";
