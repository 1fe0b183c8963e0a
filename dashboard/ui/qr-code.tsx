// A QR code as one path, dark on light in both themes: cameras read nothing else.
import { encode } from "uqr";

const QUIET = 2;

export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: "M", border: QUIET });
  const squares = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")));
  return (
    <svg role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} className="qr" shapeRendering="crispEdges">
      <path d={squares.join("")} />
    </svg>
  );
}
