/** How many slots a cluster has. */
export const SLOTS = 16_384;

let tags: string[] | undefined;

/** A short text in the same Redis Cluster slot as `key`: one counter per slot, not one per key. */
export function slotTag(key: string): string {
  tags ??= findTags();
  return tags[slotOf(key)] as string;
}

function findTags(): string[] {
  const found: string[] = [];
  let missing = SLOTS;
  for (let candidate = 0; missing > 0; candidate++) {
    const tag = candidate.toString(36);
    const slot = slotOf(tag);
    if (found[slot] === undefined) {
      found[slot] = tag;
      missing--;
    }
  }
  return found;
}

/** The slot of a text without braces: CRC16 (XMODEM) modulo 16384, as the Redis Cluster specification defines it. */
export function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    }
  }
  return (crc & 0xffff) % SLOTS;
}
