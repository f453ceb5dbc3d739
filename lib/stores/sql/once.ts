/** Warns of each thing once. */
export function once(warn: (message: string) => void): (message: string) => void {
  const warned = new Set<string>();
  return (message) => {
    if (!warned.has(message)) {
      warned.add(message);
      warn(message);
    }
  };
}
