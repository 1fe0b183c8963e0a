// What is not a program but says how to run the image: the compose files and the Helm chart. Both are packed with even times
// and owners. Neither is started as a whole, as that takes Docker and Kubernetes: they are checked by the tools that read them, and of
// the compose files the pooler, which they build, is tried (pooler.ts).
import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { ROLES } from "../src/config.ts";
import { ownVersion, ROOT } from "./package.ts";
import { tryPooler } from "./pooler.ts";
import { scratchFolder, type Tried } from "./try.ts";

const DEPLOY = join(ROOT, "deploy");
const SCALE = "compose.scale.yaml";
const COMPOSE_FILES = ["compose.yaml", SCALE];
const EVEN = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"];
const NAMES = ["--set", "hostname=mail.example.eu", "--set", "baseUrl=https://mail.example.eu"];
const STORE = ["--set", "s3.endpoint=https://s3.example.eu", "--set", "s3.bucket=mail"];
const ALONE = [
  "NetworkPolicy/one",
  "PersistentVolumeClaim/one-data",
  "Service/one-http",
  "Service/one-mx",
  "Service/one-submission",
  "Service/one-internal",
  "Deployment/one-all",
];
const REFUSED: [string, RegExp, string[]][] = [
  [
    "several pods without a common store",
    /several pods need one store/,
    [...NAMES, "--set", "deployments.all.replicas=2"],
  ],
  ["no host name", /hostname/, ["--set", "baseUrl=https://mail.example.eu"]],
  ["a setting with a wrong name", /settings/, [...NAMES, "--set", "settings.HOSTNAME=x"]],
  ["a pool that is too small", /connections/, [...NAMES, "--set", "pooler.connections=3"]],
  ["a role that does not exist", /roles/, [...NAMES, "--set", "deployments.all.roles={api,mail}"]],
  ["one pod without all roles", /must have all roles/, [...NAMES, "--set", "deployments.all.roles={api,mx}"]],
];

/** `postern-compose-<version>.tgz`. */
export function buildCompose(out: string): string {
  refuseOtherTag(join(DEPLOY, "compose.yaml"), `localhost/postern:${ownVersion()}}`);
  refuseOtherTag(join(DEPLOY, "compose.scale.yaml"), `localhost/postern:${ownVersion()}}`);
  return pack(join(out, `postern-compose-${ownVersion()}.tgz`), DEPLOY, [
    ...COMPOSE_FILES,
    "compose-role.sh",
    "pooler.Dockerfile",
    "pooler.sh",
    ".env.example",
  ]);
}

/** `postern-chart-<version>.tgz`, as `helm install` takes it. */
export function buildChart(out: string): string {
  refuseOtherTag(join(DEPLOY, "helm/postern/Chart.yaml"), `\nversion: ${ownVersion()}\nappVersion: ${ownVersion()}\n`);
  return pack(join(out, `postern-chart-${ownVersion()}.tgz`), join(DEPLOY, "helm"), ["postern"]);
}

/** All artefacts carry one version. */
function refuseOtherTag(file: string, wanted: string): void {
  if (!readFileSync(file, "utf8").includes(wanted))
    throw new Error(`${file} has not ${wanted.trim()}: raise its version`);
}

function pack(file: string, folder: string, names: string[]): string {
  execFileSync("tar", [...EVEN, "--use-compress-program=gzip -n", "-cf", file, ...names], { cwd: folder });
  return file;
}

/**
 * Both are read by podman-compose with the example's settings, and refused without a password. Of the one with two nodes, who does
 * what is looked at, and its pooler is built, started and used.
 */
export async function tryCompose(file: string): Promise<Tried> {
  using undo = new DisposableStack();
  const folder = scratchFolder(undo);
  execFileSync("tar", ["-xf", file], { cwd: folder });
  copyFileSync(join(folder, ".env.example"), join(folder, ".env"));
  for (const file of COMPOSE_FILES) {
    if (compose(folder, file) !== null) throw new Error(`${file} is accepted without DATABASE_PASSWORD`);
  }
  execFileSync("sed", ["-i", "s/^DATABASE_PASSWORD=.*/DATABASE_PASSWORD=secret/", join(folder, ".env")]);
  if (compose(folder, SCALE) !== null) throw new Error(`${SCALE} is accepted without POSTERN_MASTER_KEY`);
  appendFileSync(join(folder, ".env"), "POSTERN_MASTER_KEY=of-both\nSTORE_PASSWORD=of-the-store\n");
  for (const file of COMPOSE_FILES) {
    const read = compose(folder, file);
    if (!read?.includes("postgresql://postern:secret@database:5432/postern"))
      throw new Error(`${file} is read as ${read}`);
  }
  refuseOtherRoles(compose(folder, SCALE) ?? "");
  refusePooler(compose(folder, SCALE) ?? "", "");
  const pooler = "postgresql://postern:secret@pooler:6432/postern";
  appendFileSync(join(folder, ".env"), `DATABASE_POOLER=${pooler}\n`);
  refusePooler(compose(folder, SCALE) ?? "", pooler);
  await tryPooler(folder, poolerSettings(compose(folder, SCALE, "--profile", "pooler") ?? ""));
  return { checked: "podman-compose config; its pooler was built, started and used" };
}

/** Each role is somewhere, and nodes have the same key, database and store. */
function refuseOtherRoles(text: string): void {
  type Service = { command?: string[]; environment?: Record<string, string> };
  const { services } = parse(text) as { services: Record<string, Service> };
  const nodes = Object.values(services).filter(({ command }) => command?.[0] === "start");
  const roles = nodes.flatMap(({ command = [] }) => command[2]?.split(",") ?? []).sort();
  if (roles.join() !== [...ROLES].sort().join()) throw new Error(`${SCALE} has the roles ${roles.join(", ")}`);
  const settings = new Set(nodes.map(({ environment }) => JSON.stringify(environment)));
  if (settings.size !== 1) throw new Error(`${SCALE}: its nodes have different settings`);
}

/** It is there for those who ask for it, and used where it is named. */
function refusePooler(text: string, wanted: string): void {
  type Service = { profiles?: string[]; environment?: Record<string, string> };
  const { services } = parse(text) as { services: Record<string, Service> };
  const named = services.front?.environment?.POSTERN_DATABASE_POOLER ?? "";
  if (named !== wanted) throw new Error(`${SCALE}: the pooler of its nodes is ${named}, not ${wanted}`);
  const always = services.pooler !== undefined && services.pooler.profiles?.join() !== "pooler";
  if (always) throw new Error(`${SCALE} starts the pooler without being asked`);
}

function poolerSettings(text: string): Record<string, string> {
  const { services } = parse(text) as { services: Record<string, { environment?: Record<string, string> }> };
  if (!services.pooler?.environment) throw new Error(`${SCALE} has no pooler`);
  return services.pooler.environment;
}

/** Null when it was refused. */
function compose(folder: string, file: string, ...given: string[]): string | null {
  try {
    const options = { cwd: folder, stdio: ["ignore", "pipe", "ignore"] as ("ignore" | "pipe")[] };
    return execFileSync("podman-compose", [...given, "-f", file, "config"], options)?.toString() ?? null;
  } catch {
    return null;
  }
}

/** Linted, and rendered for one pod and for several; what cannot work is refused with words. */
export async function tryChart(file: string): Promise<Tried> {
  execFileSync("helm", ["lint", "--strict", file, ...NAMES], { stdio: "pipe" });
  const alone = kinds(render(file, NAMES));
  if (alone.join() !== ALONE.join()) throw new Error(`helm template makes ${alone.join(", ")}`);
  const several = [...NAMES, ...STORE, "--set", "deployments.all.replicas=3", "--set", "serviceMonitor.enabled=true"];
  const made = kinds(render(file, several));
  for (const wanted of ["PodDisruptionBudget/one-all", "ServiceMonitor/one", "NetworkPolicy/one"]) {
    if (!made.includes(wanted)) throw new Error(`helm template makes no ${wanted}, but ${made.join(", ")}`);
  }
  refuseOtherPooler(render(file, NAMES), []);
  refuseOtherPooler(render(file, [...NAMES, "--set", "pooler.secret=its-url", "--set", "pooler.connections=20"]), [
    "POSTERN_DATABASE_POOLER_FILE=/run/secrets/postern/pooler/url",
    "POSTERN_DATABASE_CONNECTIONS=20",
  ]);
  const secret = "secretSettings.POSTERN_OIDC_CLIENT_SECRET";
  const others = ["--set", "settings.OTEL_SERVICE_NAME=mail", "--set", `${secret}.secret=oidc,${secret}.key=word`];
  const rendered = render(file, [...NAMES, ...others]);
  for (const wanted of ["name: OTEL_SERVICE_NAME", 'secretKeyRef: { name: "oidc", key: "word" }']) {
    if (!rendered.includes(wanted)) throw new Error(`helm template says nothing of ${wanted}`);
  }
  for (const [what, why, settings] of REFUSED) {
    let said = "";
    try {
      render(file, settings);
    } catch (error) {
      said = String((error as { stderr?: Buffer }).stderr);
    }
    if (!why.test(said)) throw new Error(`the chart does not refuse ${what}: ${said}`);
  }
  return { checked: "helm lint, helm template" };
}

function render(file: string, settings: string[]): string {
  const args = ["template", "one", file, "--kube-version", "1.33.0", ...settings];
  return execFileSync("helm", args, { stdio: ["ignore", "pipe", "pipe"] }).toString();
}

function refuseOtherPooler(text: string, wanted: string[]): void {
  type Pod = { spec: { containers: { env: { name: string; value: string }[] }[]; volumes: { name: string }[] } };
  const deployment = parseAllDocuments(text)
    .map((document) => document.toJS() as { kind?: string; spec: { template: Pod } } | null)
    .find((one) => one?.kind === "Deployment");
  const { containers = [], volumes = [] } = deployment?.spec.template.spec ?? {};
  const set = (containers[0]?.env ?? []).filter(({ name }) => name.startsWith("POSTERN_DATABASE_"));
  const made = set.map(({ name, value }) => `${name}=${value}`);
  if (made.join() !== wanted.join()) throw new Error(`helm template sets ${made.join(", ")}, not ${wanted.join(", ")}`);
  if (volumes.some(({ name }) => name === "pooler") !== wanted.length > 0)
    throw new Error("helm template mounts another pooler's secret");
}

function kinds(text: string): string[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    const one = document.toJS() as { kind: string; metadata: { name: string } } | null;
    return one ? [`${one.kind}/${one.metadata.name}`] : [];
  });
}
