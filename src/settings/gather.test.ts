import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { inheritedEnv } from "../../test/support/inherited-env.ts";
import { ConfigProblems, findConfig } from "../config.ts";
import { gatherSettings, SECRETS } from "./gather.ts";
import { settingLines, settingsInForce } from "./in-force.ts";

const ROOT = join(import.meta.dirname, "../..");
const URL_WITH_PASSWORD = "postgresql://postern:hidden-word@db.example/postern";
const KEY = "ab".repeat(32);
let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-settings-"));
});

after(() => {
  rmSync(dir, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  writeFileSync(join(dir, name), text, { mode: 0o600 });
  return join(dir, name);
}

function problemsOf(env: Record<string, string>): string[] {
  try {
    findConfig({ POSTERN_DATA: dir, ...env });
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigProblems);
    return error.problems;
  }
}

describe("a secret", () => {
  it("may be in a file of its own, whose last line break does not count", () => {
    for (const name of SECRETS) {
      const path = file("one-secret", " of its own \r\n");
      const { env, origins, problems } = gatherSettings({ [`${name}_FILE`]: path });
      assert.deepEqual(env, { [name]: " of its own " });
      assert.deepEqual(origins.get(name), { source: "file", path });
      assert.deepEqual(problems, []);
    }
  });

  it("may be a credential of systemd under the variable's name", () => {
    const path = file("POSTERN_MASTER_KEY", KEY);
    const { env, origins } = gatherSettings({ CREDENTIALS_DIRECTORY: dir });
    assert.equal(env.POSTERN_MASTER_KEY, KEY);
    assert.deepEqual(origins.get("POSTERN_MASTER_KEY"), { source: "credential", path });
    assert.equal(findConfig({ POSTERN_DATA: dir, CREDENTIALS_DIRECTORY: dir }).master_key?.toString("hex"), KEY);
    rmSync(path);
  });

  it("that is an empty credential is a problem, as no other value may be made or found in its place", () => {
    const path = file("POSTERN_MASTER_KEY", "\n");
    assert.deepEqual(problemsOf({ CREDENTIALS_DIRECTORY: dir }), [
      `POSTERN_MASTER_KEY: the credential ${path} is empty.`,
    ]);
    rmSync(path);
  });

  it("that is given twice, in a file that is not there, or in an empty one is a problem, and is not repeated", () => {
    const url = file("url", URL_WITH_PASSWORD);
    const cases: [Record<string, string>, RegExp][] = [
      [{ DATABASE_URL: URL_WITH_PASSWORD, DATABASE_URL_FILE: url }, /^DATABASE_URL and DATABASE_URL_FILE are both set/],
      [{ DATABASE_URL_FILE: `${url}-not` }, /^DATABASE_URL_FILE names .*url-not, which does not exist\.$/],
      [{ DATABASE_URL_FILE: dir }, /^DATABASE_URL_FILE names .*, which is a folder\.$/],
      [{ DATABASE_URL_FILE: file("empty", "\n") }, /^DATABASE_URL_FILE names .*, which is empty\.$/],
      [{ POSTERN_MASTER_KEY_FILE: file("short", "hidden-word") }, /^POSTERN_MASTER_KEY must be 32 bytes/],
    ];
    for (const [env, expected] of cases) {
      const problems = problemsOf(env);
      assert.equal(problems.length, 1, problems.join("\n"));
      assert.match(problems[0] as string, expected);
      assert.doesNotMatch(problems[0] as string, /hidden-word/);
    }
  });
});

describe("a secret in a file of more lines than one", () => {
  it("is a problem, not a secret with a line break in it, and is not repeated", () => {
    for (const name of SECRETS.filter((one) => one !== "POSTERN_BACKUP_PASSPHRASE")) {
      for (const text of ["hidden-word\nmore", "\nhidden-word\n", "# ours\r\nhidden-word\r\n"]) {
        const path = file("lines", text);
        const { env, problems } = gatherSettings({ [`${name}_FILE`]: path });
        assert.deepEqual(problems, [
          `${name}_FILE names ${path}, which has more than one line; leave the secret alone in it.`,
        ]);
        assert.deepEqual(env, {});
      }
    }
  });

  it("is one, too, as a credential", () => {
    const path = file("POSTERN_S3_SECRET_KEY", "hidden-word\nmore\n");
    const { env, problems } = gatherSettings({ CREDENTIALS_DIRECTORY: dir });
    rmSync(path);
    assert.deepEqual(problems, [
      `POSTERN_S3_SECRET_KEY: the credential ${path} has more than one line; leave the secret alone in it.`,
    ]);
    assert.equal(env.POSTERN_S3_SECRET_KEY, undefined);
  });

  it("opens a backup that was made with it, as a passphrase may have lines", () => {
    const path = file("words", "four words\nof mine\n");
    const { env, problems } = gatherSettings({ POSTERN_BACKUP_PASSPHRASE_FILE: path });
    assert.deepEqual([env.POSTERN_BACKUP_PASSPHRASE, problems], ["four words\nof mine", []]);
  });
});

describe("a file of settings", () => {
  it("gives what the environment does not, with comments and quotes, and files of secrets too", () => {
    const path = file(
      "postern.env",
      `# ours\nPOSTERN_HOSTNAME="mail.example.eu"\nexport POSTERN_LOG_LEVEL=warn # loud\n\nDATABASE_URL_FILE=${file("url", URL_WITH_PASSWORD)}\n`,
    );
    const { env, origins, problems } = gatherSettings({ POSTERN_ENV_FILE: path, POSTERN_LOG_LEVEL: "debug" });
    assert.deepEqual(problems, []);
    assert.deepEqual(env, {
      POSTERN_HOSTNAME: "mail.example.eu",
      POSTERN_LOG_LEVEL: "debug",
      DATABASE_URL: URL_WITH_PASSWORD,
    });
    assert.deepEqual(origins.get("POSTERN_HOSTNAME"), { source: "env_file", path });
    assert.equal(origins.get("POSTERN_LOG_LEVEL")?.source, "environment");
    assert.equal(origins.get("DATABASE_URL")?.source, "file");
  });

  it("with a line that sets nothing, or that is not there, is a problem with its place", () => {
    const path = file("wrong.env", "POSTERN_HOSTNAME=mail.example.eu\nPOSTERN_MX 0.0.0.0:25\n");
    assert.deepEqual(problemsOf({ POSTERN_ENV_FILE: path }), [
      `${path}, line 2: write NAME=value, or # before a comment.`,
    ]);
    assert.match(problemsOf({ POSTERN_ENV_FILE: `${path}.not` }).join(), /^--env-file names .* does not exist/);
  });

  it("takes no value that would be cut: at a # without quotes, or at a quote that the line does not end", () => {
    const lines = [
      "POSTERN_BACKUP_PASSPHRASE=correct#horse battery staple",
      'POSTERN_DATA="/srv/x',
      "POSTERN_HOSTNAME='mail.example.eu'x",
      "POSTERN_MASTER_KEY=#abc",
    ];
    const path = file("cut.env", lines.join("\n"));
    assert.deepEqual(problemsOf({ POSTERN_ENV_FILE: path }).slice(0, 4), [
      `${path}, line 1: put quotes around a value that holds a #.`,
      `${path}, line 2: the value begins with ", which must end it on the same line.`,
      `${path}, line 3: remove what stands behind the ' that ends the value.`,
      `${path}, line 4: put quotes around a value that holds a #.`,
    ]);
    const taken = file(
      "whole.env",
      "POSTERN_HOSTNAME=mail.example.eu # ours\nPOSTERN_LOG_LEVEL='warn' # few\nDATABASE_URL='a#b' \n",
    );
    const { env, problems } = gatherSettings({ POSTERN_ENV_FILE: taken });
    assert.deepEqual(problems, []);
    assert.deepEqual(
      [env.POSTERN_HOSTNAME, env.POSTERN_LOG_LEVEL, env.DATABASE_URL],
      ["mail.example.eu", "warn", "a#b"],
    );
  });

  it("of an editor that marks the encoding gives its first line too", () => {
    const path = file("marked.env", "\uFEFFPOSTERN_HOSTNAME=mail.example.eu\r\nPOSTERN_LOG_LEVEL=warn\r\n");
    const { env, problems } = gatherSettings({ POSTERN_ENV_FILE: path });
    assert.deepEqual([env.POSTERN_HOSTNAME, env.POSTERN_LOG_LEVEL, problems], ["mail.example.eu", "warn", []]);
  });

  it("takes no line for another name or value than can be seen in it", () => {
    const seen = [
      "A\u00a0=1",
      "\u00a0A=1",
      "export\u00a0A=1",
      "A=\u00a01",
      "A=1\u00a0",
      "A=1\u00a0# ours",
      "A=1\rB=2",
      "# ours\rA=1",
    ];
    const path = file("odd.env", `${seen.join("\n")}\nPOSTERN_DATA='/srv/a\u00a0b' # ours\u00a0\n\tB=2\n`);
    assert.deepEqual(
      problemsOf({ POSTERN_ENV_FILE: path }).filter((problem) => problem.startsWith(path)),
      seen.map(
        (_, index) =>
          `${path}, line ${index + 1}: a space in it is no usual one (U+0020), or an end of line; write the line again.`,
      ),
    );
  });

  it("names what is unknown in it", () => {
    const path = file("unknown.env", "POSTERN_HOST_NAME=mail.example.eu\nPATH=/bin\n");
    assert.deepEqual(findConfig({ POSTERN_DATA: dir, POSTERN_ENV_FILE: path }).unused, ["POSTERN_HOST_NAME"]);
  });
});

describe("the settings in force", () => {
  it("are not called off where something else holds in place of a value", () => {
    const text = settingLines(settingsInForce(findConfig({ POSTERN_DATA: join(dir, "none") }), new Map()), []);
    for (const line of [
      /^POSTERN_MASTER_KEY +\(made by the first start\) +default$/m,
      /^POSTERN_DNS +\(the system's resolvers\) +default$/m,
      /^POSTERN_HTTPS +\(off\) +default$/m,
    ]) {
      assert.match(text, line);
    }
  });

  it("are all those that the environment is read for, and docs/settings.md has each", () => {
    const readers = readdirSync(join(ROOT, "src/settings")).filter(
      (name) => !name.includes(".test.") && !["gather.ts", "in-force.ts"].includes(name),
    );
    const code = ["src/config.ts", ...readers.map((name) => join("src/settings", name))]
      .map((path) => readFileSync(join(ROOT, path), "utf8"))
      .join("\n");
    const variable = /"((?:POSTERN|OTEL)_\w+|DATABASE_URL)"|env\.((?:POSTERN|OTEL)_\w+|DATABASE_URL)/g;
    const read = [...code.matchAll(variable)]
      .map((match) => match[1] ?? match[2] ?? "")
      .filter((name) => !name.startsWith("POSTERN_TESTING_"));
    const settings = settingsInForce(findConfig({ POSTERN_DATA: dir }), new Map());
    const names = new Set(settings.map(({ name }) => name));
    assert.ok(read.length > 30, `${read.length}`);
    assert.deepEqual(new Set(read).difference(names), new Set());
    const page = readFileSync(join(ROOT, "docs/settings.md"), "utf8");
    for (const name of names) {
      const short = name.replace(/^POSTERN_(S3|RETENTION)/, "");
      assert.ok(page.includes(`\`${name}\``) || page.includes(`\`${short}\``), `docs/settings.md lacks ${name}`);
    }
  });

  it("are printed with where each came from, and without a secret", () => {
    const envFile = file("all.env", "POSTERN_S3_SECRET_KEY=hidden-word\nPOSTERN_LOG_LEVEL=error\n");
    const env = {
      ...inheritedEnv(),
      POSTERN_DATA: dir,
      DATABASE_URL_FILE: file("url", URL_WITH_PASSWORD),
      POSTERN_MASTER_KEY: KEY,
      POSTERN_S3_ENDPOINT: "https://s3.example",
      OTEL_EXPORTER_OTLP_ENDPOINT: "https://user:hidden-word@collector.example",
      POSTERN_S3_BUCKET: "mail",
      POSTERN_S3_ACCESS_KEY: "hidden-word",
      POSTERN_RSPAMD_URL: "http://user:hidden-word@rspamd.example:11333",
      POSTERN_BOOTSTRAP_LIVE_KEY: `svc_live_${"hidden-word".repeat(2)}`,
    };
    const run = (...args: string[]) =>
      spawnSync(process.execPath, ["src/main.ts", ...args], { cwd: ROOT, env, encoding: "utf8" });
    const { stdout, stderr, status } = run("config", "--json", "--env-file", envFile);
    assert.equal(status, 0, stderr);
    const text = run("--env-file", envFile, "config").stdout;
    assert.match(text, /^DATABASE_URL +\(set: db\.example.*\) +file \/.*url$/m);
    for (const output of [stdout, text]) assert.doesNotMatch(output, /hidden-word|abababab/);
    const settings = new Map<string, Record<string, unknown>>(
      JSON.parse(stdout).settings.map((setting: { name: string }) => [setting.name, setting]),
    );
    const { name: _name, ...level } = settings.get("POSTERN_LOG_LEVEL") ?? {};
    assert.deepEqual(level, { value: "error", secret: false, source: "env_file", path: envFile });
    assert.equal(settings.get("POSTERN_MASTER_KEY")?.source, "environment");
    assert.equal(settings.get("POSTERN_MX")?.source, "default");
    assert.equal(settings.get("POSTERN_MX")?.value, "127.0.0.1:2525");
  });

  it("name the variable that says where traces go, as it was written", () => {
    const endpoints = (env: Record<string, string>) =>
      settingsInForce(findConfig({ POSTERN_DATA: join(dir, "none"), ...env }), gatherSettings(env).origins)
        .filter(({ name }) => name.startsWith("OTEL_") && !/HEADERS|SERVICE|SAMPLER|PROTOCOL/.test(name))
        .map(({ value, source }) => [value, source]);
    const shared = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" };
    const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://u:p@c:4318/x" };
    const off = ["false", "default"];
    const none = [null, "default"];
    const shown = ["http://…@c:4318/x", "environment"];
    assert.deepEqual(endpoints({}), [off, none, none]);
    assert.deepEqual(endpoints(shared), [off, ["http://c:4318", "environment"], none]);
    assert.deepEqual(endpoints(own), [off, none, shown]);
    assert.deepEqual(endpoints({ ...shared, ...own }), [off, [null, "environment"], shown]);
    assert.deepEqual(endpoints({ ...own, OTEL_SDK_DISABLED: "true" }), [
      ["true", "environment"],
      none,
      [null, "environment"],
    ]);
  });

  it("of a file that cannot be read are wrong usage, which names it, however the program is started", () => {
    const absent = join(dir, "absent.env");
    const npm = ["run", "--silent", "postern", "--"];
    for (const [path, why] of [
      [absent, "does not exist"],
      [dir, "is a folder"],
    ] as const) {
      for (const [command, args] of [
        ["bin/postern", ["--env-file", path, "config"]],
        ["bin/postern", ["start", `--env-file=${path}`]],
        ["bin/postern", ["whoami", "--env-file", path]],
        ["npm", [...npm, "config", "--env-file", path]],
      ] as const) {
        const { status, stdout, stderr } = spawnSync(command, args, {
          cwd: ROOT,
          env: { ...inheritedEnv(), POSTERN_DATA: dir },
          encoding: "utf8",
        });
        assert.deepEqual(
          [status, stdout, stderr],
          [2, "", `postern: --env-file names ${path}, which ${why}.\n`],
          `${command} ${args.join(" ")}`,
        );
      }
    }
  });
});
