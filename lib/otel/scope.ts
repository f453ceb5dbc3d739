/** Under this name OpenTelemetry knows the library. */
export const SCOPE = 'nestjs-distributed-lock';
