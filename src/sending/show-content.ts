// A stored message as JSON: headers in order, text, HTML, attachments without their bytes.
import PostalMime from "postal-mime";

export type ContentView = {
  headers: { name: string; value: string }[];
  text_body: string | null;
  html_body: string | null;
  attachments: { filename: string | null; content_type: string; content_id: string | null; size: number }[];
};

/** Parses a message that we built ourselves (at most 25 MiB, our own structure). */
export async function showContent(mime: Buffer): Promise<ContentView> {
  const parsed = await PostalMime.parse(mime);
  return {
    headers: parsed.headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    text_body: parsed.text ?? null,
    html_body: parsed.html ?? null,
    attachments: parsed.attachments.map(({ filename, mimeType, contentId, content }) => ({
      filename: filename ?? null,
      content_type: mimeType,
      content_id: contentId ?? null,
      size: typeof content === "string" ? Buffer.byteLength(content) : content.byteLength,
    })),
  };
}
