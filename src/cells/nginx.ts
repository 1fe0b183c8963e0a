// The configuration of the nginx that stands before several cells: HTTPS by host or key, mail by its first recipient's domain,
// submission by login, each to the cell that the door names (door.ts). Whole, as nginx wants it: `nginx -c FILE`.
import { SESSION } from "../inbound/limits.ts";
import { type DoorCell, NO_CELL } from "./cell-list.ts";

export type NginxOptions = {
  cells: readonly DoorCell[];
  /** Where the door listens, host:port. */
  door: string;
  /** What the SMTP greeting says. */
  name: string;
  certificate: string;
  key: string;
  /** The folder of Debian's dynamic modules; null where mail is compiled in. */
  modules?: string | null;
};

/** The largest body of a request: POST /v1/send takes 40 MiB. */
const BODY = "45m";

/** The file's text. */
export function nginxConf(options: NginxOptions): string {
  const { certificate, key, modules = "modules" } = options;
  const load = modules === null ? "" : `load_module ${modules}/ngx_mail_module.so;\n`;
  const tls = `ssl_certificate ${quoted(certificate)};\n  ssl_certificate_key ${quoted(key)};`;
  return `# Made by: postern cells nginx
${load}worker_processes auto;
events { worker_connections 4096; }

http {
  ${tls}
${httpText(options)}}

mail {
  ${tls}
${mailText(options)}}
`;
}

function httpText({ cells, door }: NginxOptions): string {
  const upstreams = [...cells.map(({ name, http }) => [name, http] as const), [NO_CELL, door] as const];
  return `  client_max_body_size ${BODY};
${upstreams.map(([name, place]) => `  upstream ${name} { server ${place}; keepalive 32; }\n`).join("")}
  server {
    listen 443 ssl;
    listen [::]:443 ssl;
    location = /_cell {
      internal;
      proxy_pass http://${NO_CELL}/http;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-Host $host;
      proxy_set_header X-Original-URI $request_uri;
    }
    location / {
      auth_request /_cell;
      auth_request_set $cell $upstream_http_x_postern_cell;
      proxy_pass http://$cell;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto https;
      proxy_set_header X-Door-Request $request_id;
      proxy_request_buffering off;
      proxy_buffering off;
      proxy_read_timeout 75s;
      error_page 500 502 504 = @${NO_CELL};
    }
    location @${NO_CELL} {
      proxy_pass http://${NO_CELL};
      proxy_set_header X-Door-Request $request_id;
    }
  }
`;
}

/** A client waits for the door no longer than its cells may take; a mail may take long to be sent. */
function mailText({ door, name }: NginxOptions): string {
  const capabilities = `smtp_capabilities "SIZE ${SESSION.size_max}" 8BITMIME SMTPUTF8 ENHANCEDSTATUSCODES;`;
  const submission = `{
    protocol smtp;
    smtp_auth plain login;
    proxy_smtp_auth on;
    xclient off;
    ${capabilities}`;
  return `  server_name ${name};
  auth_http http://${door}/mail;
  auth_http_timeout 15s;
  proxy_protocol on;
  proxy_pass_error_message on;
  timeout 60s;
  proxy_timeout 10m;

  server {
    protocol smtp;
    smtp_auth none;
    ${capabilities}
    listen 25;
    listen [::]:25;
    starttls on;
    xclient on;
  }
  server ${submission}
    listen 587;
    listen [::]:587;
    starttls only;
  }
  server ${submission}
    listen 465 ssl;
    listen [::]:465 ssl;
  }
`;
}

function quoted(path: string): string {
  return `"${path.replace(/["\\]/g, "\\$&")}"`;
}
